// Settings to a driver's plan.
#include <utility>

#include "tools/experiment/effort.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/settings.hpp"
#include "tools/kvlift/user_error.hpp"
#include "traces/error.hpp"
#include "traces/request_source.hpp"

namespace kvlift::experiment {
namespace {

/// A sound request that no run could carry out. Every line of a trace is a request.
void check(const Request& request, const std::string& path, Time latest) {
  const auto fail = [&](const std::string& what) {
    throw UserError(path + ":" + std::to_string(request.id + 1) + ": " + what);
  };
  if (request.output > kOutputMax) {
    fail("output_length: a run takes at most " + std::to_string(kOutputMax.value) + ", found " +
         std::to_string(request.output.value));
  }
  if (request.arrival > latest) {
    fail("timestamp: a run of this scenario may last " + fixed_text(to_milliseconds(latest - Time{}), 0) +
         " ms, found " + fixed_text(to_milliseconds(request.arrival - Time{}), 0));
  }
}

RequestSource open_trace(const TraceSettings& trace, std::uint64_t seed, Time latest) {
  if (trace.path.empty()) throw UserError("workload.trace.path: no trace is given; kvlift replay TRACE gives one");
  try {
    RequestSource source = open_requests({.path = trace.path,
                                          .block_tokens = trace.block_tokens,
                                          .spread = {.kind = trace.spread, .seed = seed},
                                          .requests_max = trace.requests_max});
    return [source = std::move(source), path = trace.path, latest](Request& request) {
      try {
        if (!source(request)) return false;
        check(request, path, latest);
        return true;
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
    if (phase.kind == Phase::Kind::open_loop)
      plan.workload.source = open_trace(settings.trace, seed, arrival_max(settings));
  }
  return plan;
}

}  // namespace kvlift::experiment
