// Runs a plan under the step driver: nominal times, no contention. For conformance and for quick looks.
#pragma once

#include "core/run.hpp"

namespace kvlift::step {

/// Runs to the end of the workload. Same plan, same result, byte for byte.
RunResult run(const RunPlan& plan);

}  // namespace kvlift::step
