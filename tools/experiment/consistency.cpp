// Values that are possible each alone and impossible together.
#include <algorithm>
#include <cmath>
#include <set>

#include "tools/experiment/byte_size.hpp"
#include "tools/experiment/effort.hpp"
#include "tools/experiment/parameter_row.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

constexpr std::int64_t kNodesMax = static_cast<std::int64_t>(row::kNodesMax);

class Consistency {
 public:
  Consistency(const Settings& settings, const std::string& where) : s_(settings), where_(where) {}

  void check() const {
    phases();
    nodes();
    objects();
    store();
    policy();
    if (const auto wrong = too_much(s_)) require(false, wrong->first, wrong->second);
  }
  void check_policy() const { policy(); }

 private:
  void require(bool holds, const std::string& path, const std::string& why) const {
    if (!holds) throw UserError(where_ + ": " + path + ": " + why);
  }

  bool with_trace() const {
    for (const Phase& phase : s_.workload.phases) {
      if (phase.kind == Phase::Kind::open_loop) return true;
    }
    return false;
  }

  void phases() const {
    require(!s_.workload.phases.empty(), "workload.phases", "must have at least one phase");
    std::set<std::string> names;
    std::size_t traces = 0;
    bool closed_loop = false;
    for (std::size_t i = 0; i < s_.workload.phases.size(); ++i) {
      const Phase& phase = s_.workload.phases[i];
      const std::string path = "workload.phases[" + std::to_string(i) + "]";
      require(!phase.name.empty(), path + ".name", "must be given");
      require(names.insert(phase.name).second, path + ".name", "\"" + phase.name + "\" is the name of another phase");
      closed_loop = closed_loop || phase.kind == Phase::Kind::closed_loop;
      traces += phase.kind == Phase::Kind::open_loop ? 1 : 0;
      one_phase(phase, path);
    }
    if (traces == 0) {
      require(s_.trace.path.empty(), "workload.trace.path", "is not used: no phase is open_loop");
      require(!closed_loop || s_.workload.prompt_tokens.value >= 1, "workload.prompt_tokens",
              "must be at least 1 for a closed loop");
      return;
    }
    require(traces == 1, "workload.phases", "at most one phase can be open_loop: a trace is read once");
    require(!closed_loop, "workload.phases", "a trace (open_loop) and closed_loop phases cannot be in one run");
    trace();
  }

  void one_phase(const Phase& phase, const std::string& path) const {
    if (phase.kind == Phase::Kind::closed_loop) {
      require(phase.prompts >= 1, path + ".prompts", "must be at least 1 for a closed loop");
      require(phase.concurrency <= phase.prompts, path + ".concurrency",
              "is more than the phase's " + std::to_string(phase.prompts) + " prompts: some clients would ask nothing");
    } else {
      require(phase.prompts == 0, path + ".prompts", "is for closed_loop phases only");
      require(phase.first_prompt == 0, path + ".first_prompt", "is for closed_loop phases only");
      require(phase.concurrency == 1, path + ".concurrency", "is for closed_loop phases only");
    }
    if (phase.kind == Phase::Kind::pause) {
      require(phase.span.ns > 0, path + ".span_s", "must be above 0 for a pause");
      require(!phase.measured, path + ".measured", "a pause has no requests to measure");
    } else {
      require(phase.span.ns == 0, path + ".span_s", "is for pauses only");
    }
  }

  void trace() const {
    require(s_.trace.block_tokens.value >= 1, "workload.trace.block_tokens",
            "must be given: a trace does not say how many tokens its hash ids stand for");
    require(s_.trace.block_tokens == s_.engine.block_tokens, "workload.trace.block_tokens",
            "must be equal to engine.block_tokens (" + std::to_string(s_.engine.block_tokens.value) + ")");
    require(s_.workload.block_bytes.empty(), "workload.block_bytes",
            "is for closed loops only; a trace uses engine.bytes_per_token");
    require(s_.workload.prompt_tokens.value == 0, "workload.prompt_tokens", "is for closed loops only");
    require(s_.engine.bytes_per_token.value >= 1, "engine.bytes_per_token", "must be at least 1 with a trace");
  }

  void objects() const {
    require(!s_.workload.block_bytes.empty() || s_.engine.bytes_per_token.value >= 1, "engine.bytes_per_token",
            "must be at least 1, or workload.block_bytes must be given");
    require(s_.workload.block_bytes.empty() || s_.engine.bytes_per_token.value == 0, "engine.bytes_per_token",
            "is not used: workload.block_bytes gives the sizes; leave one of them out (0 and [])");
    const Bytes object = largest_object(s_);
    const std::string needed = " cannot hold one object of " + byte_size_text(static_cast<double>(object.value));
    const auto holds_one = [&](Bytes room, const std::string& path) {
      require(room >= object, path, byte_size_text(static_cast<double>(room.value)) + needed);
    };
    for (std::size_t i = 0; i < s_.platform.hosts.size(); ++i) {
      holds_one(s_.platform.hosts[i].segment_bytes, "cluster.hosts[" + std::to_string(i) + "].segment_bytes");
    }
    holds_one(s_.store.holder.staging_bytes, "store.holder.staging_bytes");
    holds_one(s_.store.holder.ssd_bytes, "store.holder.ssd_bytes");
    holds_one(s_.store.holder.bucket_bytes, "store.holder.bucket_bytes");
    if (s_.store.master.enable_offload) ssd(object);
  }

  /// A bucket is written as one, and what lies above the watermark is evicted at once.
  void ssd(Bytes object) const {
    const HolderSettings& holder = s_.store.holder;
    const double ratio = holder.ssd_eviction == SsdEviction::none ? 1 : holder.ssd_high_watermark_ratio;
    const double kept = static_cast<double>(holder.ssd_bytes.value) * ratio;
    const double bucket = std::min(static_cast<double>(holder.bucket_bytes.value),
                                   static_cast<double>(holder.bucket_keys) * static_cast<double>(object.value));
    require(kept >= bucket, "store.holder.ssd_bytes",
            byte_size_text(std::floor(kept)) + " up to ssd_high_watermark_ratio cannot hold one bucket of " +
                byte_size_text(bucket) + " (bucket_bytes, bucket_keys)");
  }

  void nodes() const {
    const std::int64_t nodes = node_count(s_.platform);
    require(nodes <= kNodesMax, "cluster.hosts",
            std::to_string(nodes) + " nodes, more than the " + std::to_string(kNodesMax) + " that a cluster may have");
    const std::int64_t used = s_.engine.ranks * s_.engine.engines;
    require(nodes % used == 0, "engine.ranks",
            std::to_string(s_.engine.ranks) + " ranks x " + std::to_string(s_.engine.engines) +
                " engines do not divide the cluster's " + std::to_string(nodes) + " nodes");
    require(s_.store.master.replica_num <= nodes, "store.master.replica_num",
            "is more than the cluster's " + std::to_string(nodes) + " nodes");
  }

  void store() const {
    const HolderSettings& holder = s_.store.holder;
    require(holder.ssd_low_watermark_ratio <= holder.ssd_high_watermark_ratio, "store.holder.ssd_low_watermark_ratio",
            "must not be above ssd_high_watermark_ratio");
    const MasterSettings& master = s_.store.master;
    require(!master.offload_force_evict || master.offload_on_evict, "store.master.offload_force_evict",
            "needs offload_on_evict");
    require(master.enable_offload || s_.policy.trigger == Policy::Trigger::none, "store.master.enable_offload",
            "a policy that promotes needs the SSD tier");
  }

  void only(bool allowed, bool used, const std::string& field, const std::string& when) const {
    require(allowed || !used, "policy." + field, "is for " + when + " only");
  }

  void policy() const {
    const Policy& policy = s_.policy;
    const Policy nothing;
    require(policy.gate_cap, "policy.gate_cap", "cannot be off: promotions in flight are always bounded");
    const bool on_hit = policy.trigger == Policy::Trigger::on_hit;
    const bool router = policy.trigger == Policy::Trigger::router_call;
    const bool prefetches = router || policy.trigger == Policy::Trigger::exist_probe;
    const bool pulled = policy.execution == Policy::Execution::pull;
    const bool pooled = prefetches && !pulled;
    require(!on_hit || pulled, "policy.execution", "promotion on hit is carried out by pull");
    only(on_hit || router, pulled, "execution: pull", "triggers on_hit and router_call");
    only(on_hit, policy.gate_frequency, "gate_frequency", "trigger on_hit");
    only(on_hit, policy.retry_candidates, "retry_candidates", "trigger on_hit");
    only(on_hit || prefetches, policy.gate_watermark, "gate_watermark", "policies that promote");
    only(prefetches, !policy.all_tenants, "all_tenants", "triggers exist_probe and router_call");
    only(router, policy.routers != nothing.routers, "routers", "trigger router_call");
    only(prefetches, policy.lease != Policy::LeaseMoment::none, "lease", "triggers exist_probe and router_call");
    const std::string pool = "execution immediate_pool by exist_probe or router_call";
    only(pooled, policy.gate_cooldown, "gate_cooldown", pool);
    only(pooled, policy.registration != nothing.registration, "registration", pool);
    only(pooled, policy.resident != nothing.resident, "resident", pool);
    only(pooled, policy.get_wait != Policy::GetWait::off, "get_wait", pool);
    only(pooled, policy.get_kick, "get_kick", pool);
    only(pooled && !router, policy.reserve != nothing.reserve, "reserve", "trigger exist_probe");
    require(policy.registration == Policy::Registration::one_by_one || policy.on_full != Policy::OnFull::stop_list,
            "policy.on_full", "stop_list would leave the tasks of a whole_chunk registration behind");
    pull(pulled || s_.store.master.promotion_on_hit, pulled);
    dram(on_hit || prefetches || s_.store.master.promotion_on_hit, pooled);
    waits();
    const bool reads = policy.trigger != Policy::Trigger::oracle;
    only(reads, policy.staged_reuse != nothing.staged_reuse, "staged_reuse", "policies that read the SSD");
    only(reads, policy.read_part_keys != nothing.read_part_keys, "read_part_keys", "policies that read the SSD");
    only(pooled && policy.registration == Policy::Registration::one_by_one, policy.yield_to_reads, "yield_to_reads",
         pool + " with registration one_by_one");
  }

  void pull(bool pulls, bool by_policy) const {
    const Policy& policy = s_.policy;
    const Policy nothing;
    const std::string when = "execution pull";
    only(pulls, !policy.pull_own_loop, "pull_own_loop", when);
    only(pulls && policy.pull_own_loop, policy.pull_period.ns > 0, "pull_period_ms", when + " with pull_own_loop");
    only(pulls, policy.pull_batch > 0, "pull_batch", when);
    only(pulls, policy.pull_workers != nothing.pull_workers, "pull_workers", when);
    only(by_policy, policy.task_budget.ns > 0, "task_budget_ms", when);
  }

  void dram(bool promotes, bool pooled) const {
    const Policy& policy = s_.policy;
    const bool parted = policy.dram != Policy::DramSource::shared_pool;
    only(promotes, parted, "dram", "policies that promote");
    require(!parted || (policy.dram_share > 0 && policy.dram_share < 1), "policy.dram_share",
            "must be above 0 and below 1 for dram other than shared_pool");
    only(parted, policy.dram_share > 0, "dram_share", "dram other than shared_pool");
    only(parted, !policy.dram_strict, "dram_strict", "dram other than shared_pool");
    only(pooled, policy.on_full == Policy::OnFull::next_key, "on_full: next_key", "lists of an immediate_pool");
    only(promotes && (!parted || !policy.dram_strict),
         policy.on_full == Policy::OnFull::evict || policy.on_full == Policy::OnFull::swap, "on_full",
         "promotions into the shared pool");
  }

  void waits() const {
    const Policy& policy = s_.policy;
    const bool fixed =
        policy.get_wait == Policy::GetWait::batch_deadline || policy.get_wait == Policy::GetWait::per_key;
    const bool by_length = policy.get_wait == Policy::GetWait::by_length;
    only(fixed, policy.get_wait_budget.ns > 0, "get_wait_budget_ms", "get_wait batch_deadline and per_key");
    only(by_length, policy.get_wait_base.ns > 0, "get_wait_base_ms", "get_wait by_length");
    only(by_length, policy.get_wait_per_1k_tokens.ns > 0, "get_wait_per_1k_tokens_ms", "get_wait by_length");
    only(by_length, policy.get_wait_cap.ns > 0, "get_wait_cap_ms", "get_wait by_length");
    require(!by_length || policy.get_wait_cap.ns > 0, "policy.get_wait_cap_ms", "must be above 0 for by_length");
  }

  const Settings& s_;
  const std::string& where_;
};

}  // namespace

void check_consistency(const Settings& settings, const std::string& where) { Consistency(settings, where).check(); }

void check_policy(const Settings& settings, const std::string& where) { Consistency(settings, where).check_policy(); }

}  // namespace kvlift::experiment
