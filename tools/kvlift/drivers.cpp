#include "tools/kvlift/drivers.hpp"

#include <algorithm>

#include "sim/run.hpp"
#include "tests/step/run.hpp"
#include "tools/kvlift/user_error.hpp"
#ifdef KVLIFT_REAL
#include "real/error.hpp"
#include "real/run.hpp"
#endif

namespace kvlift {

experiment::Drivers linked_drivers(const RealCommand& real) {
  experiment::Drivers drivers{{"sim", [](const RunPlan& plan) { return sim::run(plan); }},
                              {"step", [](const RunPlan& plan) { return step::run(plan); }}};
#ifdef KVLIFT_REAL
  const auto stands_in = [&real](const char* part) {
    return std::any_of(real.stand_in.begin(), real.stand_in.end(),
                       [part](const std::string& given) { return given == part || given == "all"; });
  };
  const real::RealOptions options{.folder = real.folder,
                                  .time_scale = real.time_scale,
                                  .size_scale = real.size_scale,
                                  .stand_in = {stands_in("ssd"), stands_in("links"), stands_in("calls")},
                                  .sync = !real.no_sync,
                                  .strict = real.strict};
  drivers["real"] = [options](const RunPlan& plan) {
    try {
      return real::run(plan, options);
    } catch (const real::RealError& error) {
      throw UserError(std::string("--driver real: ") + error.what());
    }
  };
#endif
  return drivers;
}

}  // namespace kvlift
