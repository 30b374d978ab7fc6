// A RunResult as bytes, for the way from a run's process to ours. Both ends are the same program, so the layout is
// the compiler's and no version is needed.
#pragma once

#include <string>
#include <string_view>

#include "core/run.hpp"

namespace kvlift::experiment {

std::string to_bytes(const RunResult& result);
/// Throws std::runtime_error when bytes are missing or left over.
RunResult result_from_bytes(std::string_view bytes);

}  // namespace kvlift::experiment
