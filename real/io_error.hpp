// What a failed device operation means: a closed list of errnos, each with its cause and what the ring does about it.
#pragma once

#include <cstdint>

#include "core/error.hpp"

namespace kvlift::real {

enum class IoAnswer : std::uint8_t {
  retry,      ///< nothing is wrong: issue it again
  step_down,  ///< this way of asking is not supported here: ask a plainer way
  no_room,    ///< the device is full: this one write fails, reads go on
  cancelled,  ///< because somebody asked for it
  failed,     ///< the device or the file does not answer
};

struct IoCause {
  int error = 0;  ///< errno, > 0
  IoAnswer answer = IoAnswer::failed;
  const char* meaning = "";
};

/// For any errno; what is not in the list is `failed`.
IoCause io_cause(int error);

}  // namespace kvlift::real
