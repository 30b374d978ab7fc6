#include "tests/step/seed_world.hpp"

#include <vector>

#include "core/cluster.hpp"

namespace kvlift::step {

namespace {

constexpr std::uint64_t kOwn = 64ULL << 56;  ///< ids from here on are the test's own events

struct SeedPlan {
  ClusterPlan cluster;
  PlatformSettings platform;
  FaultRates rates;
  std::uint64_t keys = 12;
  bool process_faults = false;
};

Duration between(Random& r, std::int64_t low_ms, std::int64_t high_ms) {
  return milliseconds(low_ms + static_cast<std::int64_t>(r.below(static_cast<std::uint64_t>(high_ms - low_ms + 1))));
}

SeedPlan draw_plan(Random& r) {
  SeedPlan p;
  // Half of the worlds follow the RFC, alone or beside promotion on hit (I1, RC-07); the others draw any design.
  const std::uint64_t design = r.below(4);
  const auto& presets = policy_preset_names();
  p.cluster.policy = *policy_preset(design < 2 ? "rfc-4271" : presets[r.below(presets.size())]);
  if (r.chance(1, 3)) {  // parts of our own design, alone or together, with any design
    Policy& own = p.cluster.policy;
    own.staged_reuse = static_cast<Policy::StagedReuse>(r.below(3));
    own.read_part_keys = static_cast<std::int64_t>(r.below(4));
    own.yield_to_reads = own.registration == Policy::Registration::one_by_one && r.chance(1, 2);
  }
  StoreSettings& s = p.cluster.store;
  const Policy::Trigger trigger = p.cluster.policy.trigger;
  s.master.promotion_on_hit = trigger != Policy::Trigger::none && trigger != Policy::Trigger::oracle && design % 2 == 1;
  s.master.kv_lease_ttl = between(r, 1, 3'000);
  s.master.eviction_high_watermark_ratio = 0.5 + 0.1 * static_cast<double>(r.below(6));
  s.master.eviction_ratio = 0.05 * static_cast<double>(1 + r.below(8));
  s.master.offload_on_evict = r.chance(1, 2);
  s.master.offload_force_evict = r.chance(1, 4);
  s.master.promotion_admission_threshold = static_cast<std::int64_t>(1 + r.below(2));
  s.master.promotion_queue_limit = r.chance(1, 3) ? static_cast<std::int64_t>(1 + r.below(3)) : 50'000;
  s.master.offloading_queue_limit = r.chance(1, 3) ? static_cast<std::int64_t>(1 + r.below(4)) : 50'000;
  s.master.promotion_max_per_heartbeat = static_cast<std::int64_t>(r.below(5));
  s.master.put_start_discard_timeout = seconds(30);
  s.master.put_start_release_timeout = seconds(60);  // longer than any stall, so that no late write meets a new owner
  s.master.allocation_strategy = static_cast<AllocationStrategy>(r.below(3));
  s.holder.heartbeat_period = between(r, 20, 1'000);
  s.holder.bucket_keys = static_cast<std::int64_t>(1 + r.below(5));
  s.holder.bucket_tail_flush = between(r, 10, 2'000);
  s.holder.staging_bytes = {static_cast<std::int64_t>(24 + r.below(64)) << 10};
  s.holder.ssd_bytes = {static_cast<std::int64_t>(r.chance(1, 3) ? 48 : 4096) << 10};
  s.holder.ssd_eviction = static_cast<SsdEviction>(r.below(3));
  s.holder.file_read_workers = static_cast<std::int64_t>(1 + r.below(3));
  s.holder.prefetch_workers = static_cast<std::int64_t>(1 + r.below(4));
  s.holder.prefetch_queue_limit = static_cast<std::int64_t>(1 + r.below(8));
  s.client.ssd_prefetch_dedup_ttl = between(r, 0, 3'000);
  s.client.ssd_prefetch_cooldown = between(r, 0, 500);
  s.client.ssd_get_wait = r.chance(1, 2) ? between(r, 1, 200) : Duration{0};
  s.client.prefetch_chunk_keys = static_cast<std::int64_t>(1 + r.below(5));
  s.client.throttle_entries_max = static_cast<std::int64_t>(4 + r.below(64));
  s.legacy.serial_endpoints = r.chance(1, 4);
  s.legacy.endpoint_fails_as_one = r.chance(1, 4);
  s.legacy.discard_late_staged_reads = r.chance(1, 4);
  s.legacy.offload_read_leases = r.chance(1, 4);
  p.platform.hosts.clear();
  const std::uint64_t nodes = 2 + r.below(2);
  for (std::uint64_t n = 0; n < nodes; ++n) {
    HostSettings host;
    host.segment_bytes = {static_cast<std::int64_t>(16 + r.below(64)) << 10};
    p.platform.hosts.push_back(host);
  }
  p.cluster.nodes = nodes_of(p.platform);
  p.cluster.seed = r.next();
  p.cluster.verify = true;
  const std::uint64_t weather = r.below(4);
  if (weather == 1) p.rates = FaultRates::all(2'000);
  if (weather == 2) p.rates = FaultRates::all(20'000);
  if (weather == 3) p.rates.per_million[r.below(kFaultKinds)] = 100'000;
  p.process_faults = r.chance(1, 2);
  return p;
}

class SeedWorld {
 public:
  explicit SeedWorld(std::uint64_t seed)
      : random_(seed),
        plan_(draw_plan(random_)),
        cluster_(plan_.cluster),
        driver_(plan_.platform, random_.next(), plan_.rates) {
    for (std::uint64_t k = 0; k < plan_.keys; ++k) {
      const Bytes size{static_cast<std::int64_t>(1 + random_.below(12 * 1024))};
      keys_.push_back({{.key = {.high = 0, .low = k}, .tenant = static_cast<TenantId>(random_.below(2))}, size});
    }
    stored_.resize(keys_.size());
    cluster_.start(driver_.now());
    driver_.take(cluster_.effects());
    driver_.schedule(static_cast<EffectId>(kOwn), driver_.now());
  }

  SeedReport run(std::uint64_t events, std::uint64_t check_every) {
    Completion c;
    for (std::uint64_t e = 0; e < events && report_.violation.empty(); ++e) {
      if (!driver_.next(c)) return fail("I9: the store has no event under way");
      handle(c, true);
      if (e % check_every == 0) verify();
    }
    if (report_.violation.empty()) calm_down();
    report_.faults = driver_.faults();
    const ClusterCounters& n = cluster_.counters();
    report_.promotions_completed = n.promotions_completed;
    report_.promotions_failed = n.promotions_failed;
    report_.promotions_skipped = n.promotions_skipped;
    report_.evictions = cluster_.master().counters().objects_evicted;
    report_.offloads = n.offload_buckets;
    report_.cooldowns = n.cooldowns_entered;
    mix(cluster_.hash());
    return report_;
  }

 private:
  SeedReport fail(std::string what) {
    if (report_.violation.empty())
      report_.violation = std::move(what) + " (event " + std::to_string(report_.events) +
                          ", t = " + std::to_string(driver_.now().ns) + " ns)";
    return report_;
  }

  void mix(std::uint64_t value) { report_.hash = mix64(report_.hash ^ value) + value; }

  void handle(const Completion& c, bool act) {
    ++report_.events;
    const Time now = driver_.now();
    mix(static_cast<std::uint64_t>(c.id) ^ static_cast<std::uint64_t>(now.ns) << 1 ^
        static_cast<std::uint64_t>(c.bytes.value));
    if (static_cast<std::uint64_t>(c.id) >= kOwn) {
      if (act) act_at_random(now);
    } else {
      cluster_.on(c, now);
    }
    take_results();
    driver_.take(cluster_.effects());
  }

  void act_at_random(Time now) {
    driver_.schedule(static_cast<EffectId>(kOwn), now + Duration{static_cast<std::int64_t>(random_.below(20'000'000))});
    const auto node = static_cast<NodeId>(random_.below(plan_.cluster.nodes.size()));
    if (plan_.process_faults && random_.chance(1, 40)) return process_fault(node, now);
    if (!cluster_.alive(node)) {
      if (random_.chance(1, 4)) {
        ++report_.process_faults[static_cast<std::size_t>(ProcessFault::node_restart)];
        cluster_.restart(node, now);
      }
      return;
    }
    // A run of keys, as a prompt's blocks are; now and then a key twice.
    const std::uint64_t first = random_.below(keys_.size());
    const std::uint64_t count = 1 + random_.below(5);
    std::vector<KeyItem> items;
    std::vector<ObjectKey> names;
    for (std::uint64_t i = 0; i < count; ++i) {
      const KeyItem& item = keys_[(first + (random_.chance(1, 20) ? 0 : i)) % keys_.size()];
      items.push_back(item);
      names.push_back(item.key);
    }
    const auto token = static_cast<OpToken>(open_.size());
    const std::uint64_t kind = random_.below(20);
    if (kind < 7) {
      open(token, OpResult::Kind::put);
      for (const KeyItem& item : items) stored_[item.key.key.low] = true;
      cluster_.put(node, token, items, now);
    } else if (kind < 12) {
      const bool routed = plan_.cluster.policy.trigger == Policy::Trigger::router_call && random_.chance(1, 2);
      open(token, routed ? OpResult::Kind::route : OpResult::Kind::probe);
      if (routed) {
        cluster_.route(static_cast<std::uint32_t>(random_.below(2)), token, names, now);
      } else {
        cluster_.probe(node, token, names, now);
      }
    } else if (kind < 19) {
      open(token, OpResult::Kind::get);
      asked_[open_.size() - 1] = names;
      cluster_.get(node, token, items, now, {static_cast<std::int64_t>(random_.below(4'000))});
    } else {
      open(token, OpResult::Kind::remove);
      cluster_.remove(node, token, names[0], now);
    }
  }

  void process_fault(NodeId node, Time now) {
    const std::uint64_t kind = random_.below(4);
    if (kind < 2) {
      if (!cluster_.alive(node)) return;
      ++report_.process_faults[static_cast<std::size_t>(ProcessFault::node_crash)];
      cluster_.crash(node, now);
    } else {
      const bool snapshot = kind == 2;
      ++report_.process_faults[static_cast<std::size_t>(snapshot ? ProcessFault::master_restart_snapshot
                                                                 : ProcessFault::master_restart_empty)];
      cluster_.restart_master(snapshot, now);
    }
  }

  void open(OpToken token, OpResult::Kind kind) {
    (void)token;
    open_.push_back({true, kind});
    asked_.emplace_back();
  }

  void take_results() {
    for (const OpResult& r : cluster_.results()) {
      const auto at = static_cast<std::size_t>(r.token);
      if (at >= open_.size() || !open_[at].first || open_[at].second != r.kind) {
        fail("I5: an operation ended twice, or one that was never started");
        continue;
      }
      open_[at].first = false;
      mix(static_cast<std::uint64_t>(at) ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(r.error)));
      if (r.kind != OpResult::Kind::get || r.error != Error::OK) continue;
      if (r.keys.size() != asked_[at].size()) fail("I5: a get answers for other keys than it was asked");
      for (std::size_t i = 0; i < r.keys.size(); ++i) {
        if (r.keys[i].error != Error::OK) {
          ++report_.gets_failed;
          continue;
        }
        ++report_.gets_ok;
        if (!stored_[asked_[at][i].key.low]) fail("I4: a get delivered a key that was never stored");
      }
    }
    cluster_.results().clear();
  }

  void verify() {
    const std::string broken = cluster_.check(driver_.now());
    if (!broken.empty()) fail(broken);
  }

  /// Faults stop, nodes come back, nothing new is asked: within a bound everything ends and nothing is left over.
  void calm_down() {
    driver_.set_rates(FaultRates::none());
    for (std::uint32_t n = 0; n < plan_.cluster.nodes.size(); ++n) {
      if (!cluster_.alive(static_cast<NodeId>(n))) cluster_.restart(static_cast<NodeId>(n), driver_.now());
    }
    driver_.take(cluster_.effects());
    const Time bound = driver_.now() + plan_.cluster.store.master.put_start_release_timeout + seconds(120);
    Completion c;
    while (!cluster_.quiet() && driver_.now() <= bound && report_.violation.empty()) {
      if (!driver_.next(c)) {
        fail("I9: the store has no event under way");
        return;
      }
      handle(c, false);
    }
    verify();
    if (!cluster_.quiet()) fail("I9: still under way although faults had stopped: " + cluster_.pending());
    for (const auto& [still_open, kind] : open_) {
      (void)kind;
      if (still_open) fail("I5: an operation never ended");
    }
  }

  Random random_;
  SeedPlan plan_;
  Cluster cluster_;
  StepDriver driver_;
  std::vector<KeyItem> keys_;
  std::vector<bool> stored_;
  std::vector<std::pair<bool, OpResult::Kind>> open_;
  std::vector<std::vector<ObjectKey>> asked_;
  SeedReport report_;
};

}  // namespace

SeedReport run_seed(std::uint64_t seed, std::uint64_t events, std::uint64_t check_every) {
  return SeedWorld(seed).run(events, check_every);
}

}  // namespace kvlift::step
