#include "sim/run.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "core/world.hpp"
#include "sim/simgrid_driver.hpp"

namespace kvlift::sim {

RunResult run(const RunPlan& plan) { return run(plan, {}, nullptr); }

RunResult run(const RunPlan& plan, const Progress& progress, Cost* cost) {
  World world(plan);
  SimGridDriver* driver = nullptr;
  std::int64_t reported = 0;
  Time last;  // timers are kept in doubles: what rounds to the past belongs to the present
  SimGridDriver simgrid(plan.platform, [&](const Completion& completion, Time now) {
    if (world.done()) return driver->stop();  // periodic work that was still under way
    last = std::max(last, now);
    world.on(completion, last);
    driver->take(world.effects());
    if (progress && world.requests_finished() >= reported + 100) {
      reported = world.requests_finished();
      progress(reported);
    }
  });
  driver = &simgrid;
  world.start(simgrid.now());
  simgrid.take(world.effects());
  simgrid.run();
  KVLIFT_ASSERT(world.done());
  if (cost != nullptr) *cost = simgrid.cost();
  return world.result();
}

}  // namespace kvlift::sim
