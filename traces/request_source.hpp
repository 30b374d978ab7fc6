// A trace file as the request source of core's open-loop phase.
#pragma once

#include <cstdint>
#include <string>

#include "core/workload.hpp"
#include "traces/spread.hpp"

namespace kvlift {

struct RequestSourceSettings {
  std::string path;
  Tokens block_tokens = {0};  ///< must be said
  SpreadSettings spread;
  std::int64_t requests_max = 0;  ///< stop after so many, set apart as in the whole trace; 0: all
};

/// Opens the file at once and reads it as it is drained; copies of the result share one position. Memory follows the
/// distinct ids, which must form a tree: a run would count hits that cannot be. Throws TraceError, here or when called.
RequestSource open_requests(const RequestSourceSettings& settings);

}  // namespace kvlift
