#include "core/policy.hpp"

#include <algorithm>
#include <utility>

namespace kvlift {

namespace {

using Preset = std::pair<std::string_view, Policy>;

/// Column P1: promotion on hit as merged (#2071), with the retry of transient refusals (#2690).
Policy on_hit() {
  Policy p;
  p.trigger = Policy::Trigger::on_hit;
  p.gate_frequency = true;
  p.gate_watermark = true;
  p.execution = Policy::Execution::pull;
  p.pull_own_loop = false;
  p.retry_candidates = true;
  return p;
}

/// Column P2: the concept leaves the executor open; an allocation is a put's, with its eviction.
Policy concept_2213() {
  Policy p;
  p.trigger = Policy::Trigger::exist_probe;
  p.on_full = Policy::OnFull::evict;
  return p;
}

/// Column P4.
Policy rfc_4271() {
  Policy p;
  p.trigger = Policy::Trigger::exist_probe;
  p.gate_cooldown = true;
  p.lease = Policy::LeaseMoment::commit;
  p.get_wait = Policy::GetWait::batch_deadline;
  p.get_kick = true;
  return p;
}

/// Column P3, where it behaves differently from P4.
Policy impl_2646() {
  Policy p = rfc_4271();
  p.all_tenants = false;
  p.reserve = Policy::Reserve::after_query;
  p.registration = Policy::Registration::whole_chunk;
  p.resident = Policy::Resident::accepted;
  p.on_full = Policy::OnFull::next_key;
  p.get_wait = Policy::GetWait::per_key;
  p.get_wait_budget = milliseconds(10);
  p.get_kick = false;
  return p;
}

/// What a buffer of promotions takes of DRAM. Assumed: #3417 gives no size.
constexpr double kBufferShare = 0.1;

/// Column P5, route A: a dedicated transit buffer, strict.
Policy router_3417() {
  Policy p;
  p.trigger = Policy::Trigger::router_call;
  p.gate_watermark = true;
  p.execution = Policy::Execution::pull;
  p.pull_period = milliseconds(100);
  p.pull_batch = 32;
  p.lease = Policy::LeaseMoment::enqueue;
  p.dram = Policy::DramSource::transit_buffer;
  p.dram_share = kBufferShare;
  return p;
}

/// Our own: RFC #4271, and the SSD is read once for everybody, for those first whose request waits.
Policy kvlift_own() {
  Policy p = rfc_4271();
  p.staged_reuse = Policy::StagedReuse::until_needed;
  p.read_part_keys = 1;
  p.yield_to_reads = true;
  return p;
}

std::vector<Preset> make_presets() {
  std::vector<Preset> list{{"none", {}}, {"promotion-on-hit", on_hit()}};
  const auto add = [&list](std::string_view name, Policy policy, auto&& vary) {
    vary(policy);
    list.emplace_back(name, policy);
  };
  const auto same = [](Policy&) {};
  add("promotion-on-hit-no-retry", on_hit(), [](Policy& p) { p.retry_candidates = false; });  // #2071 alone
  add("promotion-on-hit-32", on_hit(), [](Policy& p) { p.pull_batch = 32; });
  add("promotion-on-hit-own-loop", on_hit(), [](Policy& p) {  // #2529
    p.pull_own_loop = true;
    p.pull_period = milliseconds(100);
    p.pull_batch = 32;
  });
  add("promotion-on-hit-workers", on_hit(), [](Policy& p) {  // #2736
    p.pull_own_loop = true;
    p.pull_period = milliseconds(100);
    p.pull_batch = 32;
    p.pull_workers = 4;
  });
  add("promotion-on-hit-budget", on_hit(), [](Policy& p) {  // #2769
    p.pull_batch = 32;
    p.task_budget = seconds(10);
  });
  add("concept-2213", concept_2213(), same);
  add("impl-2646", impl_2646(), same);
  add("rfc-4271", rfc_4271(), same);
  add("rfc-4271-router", rfc_4271(), [](Policy& p) { p.trigger = Policy::Trigger::router_call; });
  add("rfc-4271-buffer", rfc_4271(), [](Policy& p) {
    p.dram = Policy::DramSource::transit_buffer;
    p.dram_share = kBufferShare;
  });
  add("rfc-4271-partition", rfc_4271(), [](Policy& p) {
    p.dram = Policy::DramSource::reserved_partition;
    p.dram_share = kBufferShare;
    p.dram_strict = false;
  });
  add("rfc-4271-watermark", rfc_4271(), [](Policy& p) { p.gate_watermark = true; });
  add("rfc-4271-probe-none", rfc_4271(), [](Policy& p) { p.probe_lease = Policy::ProbeLease::none; });
  add("rfc-4271-probe-last", rfc_4271(), [](Policy& p) { p.probe_lease = Policy::ProbeLease::last_hit_only; });
  add("rfc-4271-probe-prefix", rfc_4271(), [](Policy& p) { p.probe_lease = Policy::ProbeLease::longest_prefix; });
  add("rfc-4271-best-effort", rfc_4271(), [](Policy& p) {
    p.get_wait = Policy::GetWait::off;
    p.get_kick = false;
  });
  add("rfc-4271-wait-complete", rfc_4271(), [](Policy& p) { p.get_wait = Policy::GetWait::complete; });
  add("rfc-4271-wait-length", rfc_4271(), [](Policy& p) {  // sglang #8692; the three figures are assumed
    p.get_wait = Policy::GetWait::by_length;
    p.get_wait_base = milliseconds(10);
    p.get_wait_per_1k_tokens = milliseconds(25);
    p.get_wait_cap = seconds(2);
  });
  add("router-3417", router_3417(), same);
  add("router-3417-loose", router_3417(), [](Policy& p) { p.dram_strict = false; });
  add("router-3417-partition", router_3417(),  // route B
      [](Policy& p) { p.dram = Policy::DramSource::reserved_partition; });
  add("kvlift", kvlift_own(), same);
  add("oracle", {}, [](Policy& p) { p.trigger = Policy::Trigger::oracle; });
  return list;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list = make_presets();
  return list;
}

}  // namespace

std::optional<Policy> policy_preset(std::string_view name) {
  const auto at = std::find_if(presets().begin(), presets().end(), [&](const Preset& p) { return p.first == name; });
  return at == presets().end() ? std::nullopt : std::optional(at->second);
}

const std::vector<std::string_view>& policy_preset_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Preset& preset : presets()) list.push_back(preset.first);
    return list;
  }();
  return names;
}

}  // namespace kvlift
