#include "tools/kvlift/drivers.hpp"

#include "sim/run.hpp"
#include "tests/step/run.hpp"

namespace kvlift {

experiment::Drivers linked_drivers() {
  return {{"sim", [](const RunPlan& plan) { return sim::run(plan); }},
          {"step", [](const RunPlan& plan) { return step::run(plan); }}};
}

}  // namespace kvlift
