#include "tests/step/run.hpp"

#include "core/assert.hpp"
#include "core/world.hpp"
#include "tests/step/step_driver.hpp"

namespace kvlift::step {

RunResult run(const RunPlan& plan) {
  World world(plan);
  StepDriver driver(plan.platform, plan.seed, FaultRates::none());
  world.start(driver.now());
  driver.take(world.effects());
  Completion completion;
  while (!world.done()) {
    KVLIFT_ASSERT(driver.next(completion));
    world.on(completion, driver.now());
    driver.take(world.effects());
  }
  return world.result();
}

}  // namespace kvlift::step
