#include "tools/experiment/effort.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace kvlift::experiment {
namespace {

constexpr double kEventsMax = 5e7;       // 15 to 30 s of wall time, measured at 2 to 3 million events a second
constexpr double kTraceEventsMax = 1e9;  // of the time between arrivals
constexpr double kSpanMax = 31'536'000;  // a year of simulated time
constexpr double kEventsOfKey = 8;       // stored, probed, fetched, by one rank
constexpr double kEventsOfRound = 4;     // a heartbeat or ping with its calls; ten times as dear among 3,000 nodes
constexpr double kNodesOfRound = 300;

struct Effort {
  double span_s = 0;
  double events = 0;
};

/// Rounds of eviction, heartbeats and pings.
double periodic_events_per_s(const Settings& settings) {
  const auto rate = [](Duration period) { return period.ns > 0 ? 1 / to_seconds(period) : 0; };
  const auto nodes = static_cast<double>(node_count(settings.platform));
  const double rounds =
      nodes * (rate(settings.store.holder.heartbeat_period) + rate(settings.store.client.ping_period));
  return rate(settings.store.master.eviction_period) + rounds * kEventsOfRound * (1 + nodes / kNodesOfRound);
}

/// Seconds to move one byte through the slowest device on its way.
double seconds_per_byte(const PlatformSettings& platform) {
  double slowest = 0;
  for (const HostSettings& host : platform.hosts) {
    for (const double bandwidth : {host.ssd.read_bandwidth, host.ssd.stream_bandwidth, host.ssd.cached_bandwidth,
                                   host.copy_bandwidth, host.node_bandwidth, host.nic_bandwidth})
      slowest = std::max(slowest, 1 / bandwidth);
  }
  return slowest;
}

/// One closed-loop prompt, alone.
Effort effort_of_prompt(const Settings& settings) {
  const EngineSettings& engine = settings.engine;
  const auto tokens = static_cast<double>(settings.workload.prompt_tokens.value);
  const auto output = static_cast<double>(settings.workload.prompt_output.value);
  const double ranks = engine.ranks_share_keys ? static_cast<double>(engine.ranks) : 1;
  const double keys = tokens / static_cast<double>(engine.block_tokens.value);
  const double bytes = keys * static_cast<double>(largest_object(settings).value) * ranks;
  const double steps = output + tokens / static_cast<double>(engine.max_num_batched_tokens.value);
  const double compute_ns = steps * static_cast<double>(engine.step_base.ns) + tokens * engine.prefill_ns_per_token +
                            tokens * tokens / 2 * engine.prefill_ns_per_token_pair +
                            output * engine.decode_ns_per_sequence;
  const double rpc_s = 4 * to_seconds(settings.platform.rpc_latency + settings.platform.rpc_service) +
                       keys * to_seconds(settings.platform.rpc_key_service);
  return {compute_ns / 1e9 + 2 * bytes * seconds_per_byte(settings.platform) + rpc_s,
          steps + kEventsOfKey * keys * static_cast<double>(engine.ranks)};
}

Effort effort_of(const Phase& phase, const Settings& settings) {
  Effort effort{to_seconds(phase.span), 0};
  if (phase.kind == Phase::Kind::closed_loop) {
    const Effort one = effort_of_prompt(settings);
    const auto prompts = static_cast<double>(phase.prompts);
    const auto at_once = static_cast<double>(std::min(phase.concurrency, settings.engine.max_num_seqs));
    effort = {prompts * one.span_s / at_once, prompts * one.events};
  }
  effort.events += effort.span_s * periodic_events_per_s(settings);
  return effort;
}

std::string about(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

}  // namespace

std::optional<std::pair<std::string, std::string>> too_much(const Settings& settings) {
  Effort sum;
  for (std::size_t i = 0; i < settings.workload.phases.size(); ++i) {
    const Effort effort = effort_of(settings.workload.phases[i], settings);
    sum = {sum.span_s + effort.span_s, sum.events + effort.events};
    if (sum.span_s <= kSpanMax && sum.events <= kEventsMax) continue;
    return std::pair{"workload.phases[" + std::to_string(i) + "]",
                     "takes about " + about(effort.span_s) + " s of simulated time and " + about(effort.events) +
                         " events; one run may have " + about(kSpanMax) + " s and " + about(kEventsMax) + " events"};
  }
  return std::nullopt;
}

double requests_per_s_max(const Settings& settings, const Phase& phase, bool cached) {
  const EngineSettings& engine = settings.engine;
  const auto ranks = static_cast<double>(engine.ranks);
  const auto output = static_cast<double>(settings.workload.prompt_output.value);
  const double all = static_cast<double>(prompt_bytes(settings).value) * (engine.ranks_share_keys ? ranks : 1);
  double stream = 0;
  double device = 0;
  for (const HostSettings& host : settings.platform.hosts) {
    stream = std::max(stream, host.ssd.stream_bandwidth);
    device = std::max(device, host.ssd.read_bandwidth);
  }
  const double load_s = std::max(all / ranks / stream, all / device);
  const double prefill_s =
      static_cast<double>(settings.workload.prompt_tokens.value) * engine.prefill_ns_per_token / 1e9;
  const double decode_s = output * (to_seconds(engine.step_base) + engine.decode_ns_per_sequence / 1e9);
  const auto engines = static_cast<double>(engine.engines);
  const double at_once =
      std::min(static_cast<double>(phase.concurrency), static_cast<double>(engine.max_num_seqs) * engines);
  const double rate = at_once / std::max(1e-9, (cached ? load_s : prefill_s) + decode_s);
  return cached ? rate : std::min(rate, engines / std::max(1e-9, prefill_s));  // prefill is done one by one
}

Time arrival_max(const Settings& settings) {
  const double rate = std::max(periodic_events_per_s(settings), kTraceEventsMax / kSpanMax);
  return Time{} + from_seconds(kTraceEventsMax / rate);
}

}  // namespace kvlift::experiment
