// A run on this machine.
#pragma once

#include "core/run.hpp"
#include "real/options.hpp"

namespace kvlift::real {

/// Carries the plan out and measures it; `performed_by` of the result says with what. Throws RealError when this
/// machine cannot: no folder, too little memory, io_uring refused under `strict`.
RunResult run(const RunPlan& plan, const RealOptions& options);

}  // namespace kvlift::real
