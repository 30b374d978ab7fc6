#include "tools/experiment/lease_pressure.hpp"

#include <algorithm>

#include "tools/experiment/byte_size.hpp"
#include "tools/experiment/effort.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/kvlift/user_error.hpp"
#include "traces/error.hpp"
#include "traces/reader.hpp"

namespace kvlift::experiment {
namespace {

double request_bytes(const Settings& settings, double tokens) {
  if (!settings.workload.block_bytes.empty()) return static_cast<double>(prompt_bytes(settings).value);
  return tokens * static_cast<double>(settings.engine.bytes_per_token.value);
}

/// What a phase asks for.
struct Load {
  double requests_per_s = 0;
  double tokens = 0;  ///< of one request
  double requests = 0;
};

/// Of the first requests, so that a long trace is not read twice; nothing for a trace at one instant.
Load load_of(const TraceSettings& trace) {
  constexpr std::int64_t kRequestsMax = 10'000;
  Load load;
  try {
    TraceReader reader(trace.path, trace.block_tokens);
    TraceRequest request;
    Time first;
    Time last;
    for (std::int64_t i = 0; i < kRequestsMax && reader.next(request); ++i) {
      if (i == 0) first = request.arrival;
      last = request.arrival;
      load.tokens += static_cast<double>(request.input_length.value);
      ++load.requests;
    }
    load.tokens /= std::max(1.0, load.requests);
    if (last > first) load.requests_per_s = load.requests / to_seconds(last - first);
  } catch (const TraceError& error) {
    throw UserError(error.what());
  }
  return load;
}

/// All loads of an arm by phase; a pause asks for nothing.
std::vector<Load> loads_of(const Settings& settings) {
  std::vector<Load> loads;
  std::int64_t asked = 0;  // prompts below this number were asked by an earlier phase
  for (const Phase& phase : settings.workload.phases) {
    Load load;
    if (phase.kind == Phase::Kind::open_loop && !settings.trace.path.empty()) load = load_of(settings.trace);
    if (phase.kind == Phase::Kind::closed_loop) {
      load = {requests_per_s_max(settings, phase, phase.first_prompt < asked),
              static_cast<double>(settings.workload.prompt_tokens.value), static_cast<double>(phase.prompts)};
      asked = std::max(asked, phase.first_prompt + phase.prompts);
    }
    loads.push_back(load);
  }
  return loads;
}

}  // namespace

double leased_bytes(const Settings& settings, double requests_per_s, double tokens_per_request, double requests) {
  const double under_lease = std::min(requests, requests_per_s * to_seconds(settings.store.master.kv_lease_ttl));
  return under_lease * request_bytes(settings, tokens_per_request);
}

std::optional<std::string> lease_pressure(const Settings& settings, double requests_per_s, double tokens_per_request,
                                          double requests) {
  const double leased = leased_bytes(settings, requests_per_s, tokens_per_request, requests);
  const double dram = static_cast<double>(dram_bytes(settings.platform).value);
  if (settings.policy.probe_lease == Policy::ProbeLease::none || leased <= dram) return std::nullopt;
  const double per_request = request_bytes(settings, tokens_per_request);
  return "a lease of " + number_text(to_seconds(settings.store.master.kv_lease_ttl)) + " s x " +
         fixed_text(requests_per_s, 2) + " requests/s x " + byte_size_text(per_request) + " pins " +
         byte_size_text(rounded(leased, 0)) + ", more than the " + byte_size_text(dram) +
         " of DRAM: promotions and puts find no room";
}

std::vector<std::string> lease_warnings(const Scenario& scenario, const std::vector<std::string>& arms) {
  std::vector<std::string> warnings;
  for (const Arm& arm : scenario.arms) {
    if (!arms.empty() && std::find(arms.begin(), arms.end(), arm.name) == arms.end()) continue;
    if (arm.settings.policy.probe_lease == Policy::ProbeLease::none) continue;
    const std::vector<Load> loads = loads_of(arm.settings);
    const auto leased = [&](const Load& load) {
      return leased_bytes(arm.settings, load.requests_per_s, load.tokens, load.requests);
    };
    const auto worst = std::max_element(loads.begin(), loads.end(),
                                        [&](const Load& a, const Load& b) { return leased(a) < leased(b); });
    const auto warning = lease_pressure(arm.settings, worst->requests_per_s, worst->tokens, worst->requests);
    if (!warning) continue;
    const Phase& phase = arm.settings.workload.phases[static_cast<std::size_t>(worst - loads.begin())];
    warnings.push_back("arm " + arm.name + ", phase " + phase.name + ", estimated: " + *warning);
  }
  return warnings;
}

}  // namespace kvlift::experiment
