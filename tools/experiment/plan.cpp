// Settings to a driver's plan.
#include <utility>

#include "tools/experiment/settings.hpp"
#include "tools/kvlift/user_error.hpp"
#include "traces/error.hpp"
#include "traces/request_source.hpp"

namespace kvlift::experiment {
namespace {

RequestSource open_trace(const TraceSettings& trace, std::uint64_t seed) {
  if (trace.path.empty()) throw UserError("workload.trace.path: no trace is given; kvlift replay TRACE gives one");
  try {
    RequestSource source = open_requests({.path = trace.path,
                                          .block_tokens = trace.block_tokens,
                                          .spread = {.kind = trace.spread, .seed = seed},
                                          .requests_max = trace.requests_max});
    return [source = std::move(source)](Request& request) {
      try {
        return source(request);
      } catch (const TraceError& error) {
        throw UserError(error.what());
      }
    };
  } catch (const TraceError& error) {
    throw UserError(error.what());
  }
}

}  // namespace

RunPlan make_plan(const Settings& settings, std::uint64_t seed) {
  RunPlan plan{settings.store, settings.policy, settings.platform, settings.engine, settings.workload, seed};
  for (const Phase& phase : plan.workload.phases) {
    if (phase.kind == Phase::Kind::open_loop) plan.workload.source = open_trace(settings.trace, seed);
  }
  return plan;
}

}  // namespace kvlift::experiment
