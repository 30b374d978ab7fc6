// Runs a plan in simulated time on SimGrid.
#pragma once

#include <cstdint>
#include <functional>

#include "core/run.hpp"

namespace kvlift::sim {

/// What a run cost the simulator; not part of the result, since it differs between machines.
struct Cost {
  std::uint64_t activities = 0;  ///< SimGrid activities (disk, transfer)
  std::uint64_t timers = 0;      ///< SimGrid timers (delays, calls, compute)
};

/// Called now and then with the number of requests finished.
using Progress = std::function<void(std::int64_t)>;

/// Runs to the end of the workload; same plan, same bytes. SimGrid allows one engine to a process, so a process
/// may call this once.
RunResult run(const RunPlan& plan);
RunResult run(const RunPlan& plan, const Progress& progress, Cost* cost);

}  // namespace kvlift::sim
