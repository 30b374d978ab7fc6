// What is wrong with a trace file or with a request for one. The message is one line that names the place first
// ("trace.jsonl:12: input_length: ..."), so that a tool can print it as it is.
#pragma once

#include <stdexcept>

namespace kvlift {

class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kvlift
