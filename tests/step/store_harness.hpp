// A store under the step driver for tests of single rules: operations that run to their end, effects that can be
// altered on their way, invariants after every event.
//
//   Store store(small_store());
//   store.to_ssd(kNode0, items(0, 3));
//   store.alter(request(Component::job).after(1), {.error = Error::RPC_TIMEOUT});   // the registration gets lost
//   store.probe(kNode0, keys(0, 3));
//   store.settle();
//
// In small_store() everything that is not leased leaves DRAM at the next eviction tick as soon as it is on SSD, every
// offload round writes what it has, and no process pings.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster.hpp"
#include "core/cluster_state.hpp"
#include "tests/step/step_driver.hpp"

namespace kvlift::step {

inline constexpr NodeId kNode0{0};
inline constexpr NodeId kNode1{1};
inline constexpr NodeId kNode2{2};
inline constexpr Bytes kBlock = kibibytes(64);  ///< size of an object unless a test says otherwise

inline ObjectKey key(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }
inline std::vector<ObjectKey> keys(std::uint64_t first, std::uint64_t count) {
  std::vector<ObjectKey> list;
  for (std::uint64_t i = 0; i < count; ++i) list.push_back(key(first + i));
  return list;
}
inline std::vector<KeyItem> items(std::uint64_t first, std::uint64_t count, Bytes size = kBlock) {
  std::vector<KeyItem> list;
  for (const ObjectKey& k : keys(first, count)) list.push_back({k, size});
  return list;
}

struct StoreSetup {
  ClusterPlan plan;
  PlatformSettings platform;
};

inline StoreSetup small_store(std::int64_t nodes = 2, Bytes segment = mebibytes(4)) {
  StoreSetup setup;
  setup.platform.hosts.assign(1, HostSettings{});
  setup.platform.hosts[0].count = nodes;
  setup.platform.hosts[0].segment_bytes = segment;
  ClusterPlan& plan = setup.plan;
  plan.nodes = nodes_of(setup.platform);
  plan.policy = *policy_preset("rfc-4271");
  plan.verify = true;
  plan.store.master.eviction_high_watermark_ratio = 0;
  plan.store.master.eviction_ratio = 1;
  plan.store.master.allocation_strategy = AllocationStrategy::local_first;
  plan.store.holder.heartbeat_period = milliseconds(20);
  plan.store.holder.bucket_tail_flush = {0};
  plan.store.client.ping_period = {0};
  return setup;
}

/// Which effects a rule is about; the first `skip` that match are left alone.
struct Match {
  Component component = Component::none;  ///< none: any
  std::optional<EffectKind> kind = std::nullopt;
  NodeId node = NodeId::none;  ///< none: any
  int skip = 0;
  std::int32_t requests = -1;  ///< -1: any

  Match after(int n) const { return {component, kind, node, n, requests}; }
  Match at(NodeId n) const { return {component, kind, n, skip, requests}; }
  Match of_keys(std::int32_t n) const { return {component, kind, node, skip, n}; }
  bool accepts(const Effect& e) const {
    return (component == Component::none || static_cast<std::uint64_t>(e.id) >> 56 == std::uint64_t(component)) &&
           (!kind || *kind == e.kind) && (requests < 0 || requests == e.requests) &&
           (node == NodeId::none || node == e.node);
  }
};
inline Match request(Component c) { return {c, EffectKind::rpc_request}; }
inline Match reply(Component c) { return {c, EffectKind::rpc_reply}; }
inline Match disk_read(Component c) { return {c, EffectKind::disk_read}; }
inline Match disk_write(Component c) { return {c, EffectKind::disk_write}; }
inline Match transfer(Component c) { return {c, EffectKind::transfer}; }

/// What happens to a matching effect instead of its plain success.
struct Alteration {
  Error error = Error::OK;
  std::optional<Bytes> bytes = std::nullopt;
  Duration delay = {};     ///< later than its time
  bool twice = false;      ///< rpc_request: delivered twice
  bool held = false;       ///< not before release_held()
  bool completes = false;  ///< the same completion once more
};

class Store {
 public:
  explicit Store(const StoreSetup& setup)
      : plan_(setup.plan), cluster_(setup.plan), driver_(setup.platform, 1, FaultRates::none()) {
    cluster_.start(now());
    absorb();
  }

  // -- operations: start_x() names one, finish() runs until it ends, x() does both -----------------------------
  OpToken start_probe(NodeId n, const std::vector<ObjectKey>& k) {
    return start([&](OpToken t) { cluster_.probe(n, t, k, now()); });
  }
  OpToken start_get(NodeId n, const std::vector<KeyItem>& i, Tokens prompt = {0}) {
    return start([&](OpToken t) { cluster_.get(n, t, i, now(), prompt); });
  }
  OpToken start_route(std::uint32_t router, const std::vector<ObjectKey>& k) {
    return start([&](OpToken t) { cluster_.route(router, t, k, now()); });
  }
  OpToken start_put(NodeId n, const std::vector<KeyItem>& i) {
    return start([&](OpToken t) { cluster_.put(n, t, i, now()); });
  }
  OpToken start_remove(NodeId n, const ObjectKey& k) {
    return start([&](OpToken t) { cluster_.remove(n, t, k, now()); });
  }
  OpResult finish(OpToken token) {
    EXPECT_TRUE(run_until([&] { return results_.contains(token); })) << "the operation never ended";
    ended_at_ = ended_[token];
    return results_[token];
  }
  OpResult probe(NodeId n, const std::vector<ObjectKey>& k) { return finish(start_probe(n, k)); }
  OpResult get(NodeId n, const std::vector<KeyItem>& i, Tokens prompt = {0}) { return finish(start_get(n, i, prompt)); }
  OpResult route(std::uint32_t router, const std::vector<ObjectKey>& k) { return finish(start_route(router, k)); }
  OpResult put(NodeId n, const std::vector<KeyItem>& i) { return finish(start_put(n, i)); }
  OpResult remove(NodeId n, const ObjectKey& k) { return finish(start_remove(n, k)); }
  bool ended(OpToken token) const { return results_.contains(token); }
  /// When the operation that finish() returned last had ended.
  Time ended_at() const { return ended_at_; }

  /// Puts and waits until only the SSD of `n` has them.
  void to_ssd(NodeId n, const std::vector<KeyItem>& list) {
    put(n, list);
    const auto settled = [&] {
      for (const KeyItem& item : list) {
        if (view(item.key).in_memory || !view(item.key).on_disk) return false;
      }
      return true;
    };
    ASSERT_TRUE(run_until(settled, seconds(60))) << "the objects never were on SSD alone";
  }
  /// Takes all DRAM: puts whose bytes never arrive. Allocations fail until release_held().
  void exhaust_dram() {
    std::uint64_t n = 1'000'000;
    alter(transfer(Component::put), {.held = true}, 1'000'000);
    for (Bytes size = kibibytes(1'024); size.value >= 4'096; size = {size.value / 2}) {
      for (std::uint32_t node = 0; node < plan_.nodes.size(); ++node) {
        start_put(static_cast<NodeId>(node), items(n, 16, size));
        n += 16;
      }
    }
    run_for(milliseconds(200));
    rules_.pop_back();
  }

  // -- time ------------------------------------------------------------------------------------------------------
  Time now() const { return driver_.now(); }
  bool step() {
    Completion c;
    if (!driver_.next(c)) return false;
    if (const auto mark = delayed_.find(c.id); mark != delayed_.end()) {
      c = mark->second;
      delayed_.erase(mark);
    } else if (is_own(c.id)) {
      return true;
    } else if (const auto at = altered_.find(c.id); at != altered_.end()) {
      const Alteration a = at->second;
      altered_.erase(at);
      c.error = a.error;
      if (a.bytes) c.bytes = *a.bytes;
      if (a.error != Error::OK && !a.bytes) c.bytes = {0};
      c.delivered_twice = a.twice;
      if (a.held) {
        held_.push_back(c);
        return true;
      }
      if (a.delay.ns > 0) {
        delayed_[mark_at(now() + a.delay)] = c;
        return true;
      }
      if (a.completes) deliver(c);
    }
    deliver(c);
    return true;
  }
  void run_for(Duration span) {
    const Time until = now() + span;
    mark_at(until);
    while (now() < until && step()) {
    }
  }
  template <class Predicate>
  bool run_until(Predicate done, Duration bound = seconds(900)) {
    const Time last = now() + bound;
    while (!done()) {
      if (now() > last || !step()) return false;
    }
    return true;
  }
  /// Until nothing but periodic work is left.
  void settle() {
    ASSERT_TRUE(run_until([this] { return cluster_.quiet(); })) << cluster_.pending();
  }

  // -- effects ---------------------------------------------------------------------------------------------------
  void alter(const Match& match, const Alteration& alteration, int times = 1) {
    rules_.push_back({match, alteration, times});
  }
  void drop_rules() { rules_.clear(); }
  void release_held() {
    const std::vector<Completion> list = std::exchange(held_, {});
    for (const Completion& c : list) deliver(c);
  }
  std::size_t held() const { return held_.size(); }
  struct Logged {
    Time at;
    Effect effect;
  };
  const std::vector<Logged>& log() const { return log_; }
  void clear_log() { log_.clear(); }
  std::int64_t count(const Match& match) const {
    std::int64_t n = 0;
    for (const Logged& l : log_) n += match.accepts(l.effect) ? 1 : 0;
    return n;
  }

  // -- processes -------------------------------------------------------------------------------------------------
  void crash(NodeId n) { cluster_.crash(n, now()), absorb(); }
  void restart(NodeId n) { cluster_.restart(n, now()), absorb(); }
  void restart_master(bool from_snapshot) { cluster_.restart_master(from_snapshot, now()), absorb(); }

  // -- observation -----------------------------------------------------------------------------------------------
  const Cluster& cluster() const { return cluster_; }
  const ClusterCounters& counters() const { return cluster_.counters(); }
  const Master& master() const { return cluster_.master(); }
  const MasterCounters& master_counters() const { return cluster_.master().counters(); }
  ObjectView view(const ObjectKey& k) const { return cluster_.master().query_read_only(kNode0, k); }
  std::string check() const { return cluster_.check(now()); }
  /// The first broken invariant since the start; empty when there is none.
  const std::string& violation() const { return violation_; }

 private:
  struct Rule {
    Match match;
    Alteration alteration;
    int times = 0;
  };
  static bool is_own(EffectId id) { return static_cast<std::uint64_t>(id) >> 56 >= 64; }
  EffectId mark_at(Time at) {
    const auto id = static_cast<EffectId>(64ULL << 56 | ++marks_);
    driver_.schedule(id, at);
    return id;
  }
  template <class Call>
  OpToken start(Call call) {
    const auto token = static_cast<OpToken>(++tokens_);
    call(token);
    absorb();
    return token;
  }
  void deliver(const Completion& c) {
    cluster_.on(c, now());
    absorb();
  }
  void absorb() {
    for (OpResult& r : cluster_.results()) {
      EXPECT_FALSE(results_.contains(r.token)) << "I5: an operation ended twice";
      ended_[r.token] = now();
      results_[r.token] = std::move(r);
    }
    cluster_.results().clear();
    for (const Effect& e : cluster_.effects()) {
      log_.push_back({now(), e});
      for (Rule& rule : rules_) {
        if (rule.times == 0 || !rule.match.accepts(e)) continue;
        if (rule.match.skip-- > 0) continue;
        rule.match.skip = 0;
        --rule.times;
        altered_[e.id] = rule.alteration;
        break;
      }
    }
    driver_.take(cluster_.effects());
    if (violation_.empty()) violation_ = cluster_.check(now());
  }

  ClusterPlan plan_;
  Cluster cluster_;
  StepDriver driver_;
  std::uint64_t marks_ = 0, tokens_ = 0;
  std::map<OpToken, OpResult> results_;
  std::map<OpToken, Time> ended_;
  Time ended_at_;
  std::vector<Rule> rules_;
  std::map<EffectId, Alteration> altered_;
  std::map<EffectId, Completion> delayed_;
  std::vector<Completion> held_;
  std::vector<Logged> log_;
  std::string violation_;
};

/// After a test about the store: invariants held all along, and after quiet nothing is left over at the master.
inline void expect_clean(Store& store) {
  store.settle();
  EXPECT_EQ(store.violation(), "");
  EXPECT_EQ(store.check(), "");
  EXPECT_EQ(store.master().promotions_in_flight(), 0);
}

}  // namespace kvlift::step
