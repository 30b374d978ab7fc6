// Settings to a driver's plan.
#include "tools/experiment/settings.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {

RunPlan make_plan(const Settings& settings, std::uint64_t seed) {
  RunPlan plan{settings.store, settings.policy, settings.platform, settings.engine, settings.workload, seed};
  if (!settings.trace.path.empty()) throw UserError(settings.trace.path + ": traces are not linked yet");
  return plan;
}

}  // namespace kvlift::experiment
