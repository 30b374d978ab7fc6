// A master with a few clients for tests of its rules: objects by number, one block each, time in milliseconds.
//
//   MasterWorld w({.blocks = 10, .policy = *policy_preset("rfc-4271")});
//   w.on_ssd(0, 3);                                 // keys 0..2 on the SSD of node 0 only
//   EXPECT_EQ(w.promote(0), Error::OK);
//   w.run_to(milliseconds(10'000));                 // ticks where next_tick() asks for them
//
// Nothing is offloaded, no client expires and no lease is granted unless a test asks for it. The master's own
// check() runs after every tick and at the end.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/master.hpp"

namespace kvlift {

inline constexpr NodeId kNode0{0};
inline constexpr NodeId kNode1{1};
inline constexpr NodeId kStranger{7};
inline constexpr Bytes kBlock = kibibytes(64);

inline ObjectKey key(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }
inline Time at(Duration since_start) { return Time{} + since_start; }
inline Time at_ms(std::int64_t ms) { return at(milliseconds(ms)); }

/// Settings under which only what a test does happens.
inline MasterSettings quiet_settings() {
  MasterSettings s;
  s.enable_offload = false;
  s.client_ttl = kForever;
  return s;
}

inline Policy prefetch_policy() { return *policy_preset("rfc-4271"); }
inline Policy on_hit_policy() { return *policy_preset("promotion-on-hit"); }

struct MasterWorld {
  struct Setup {
    std::int64_t blocks = 100;  ///< DRAM of each node
    std::uint32_t nodes = 1;
    MasterSettings settings = quiet_settings();
    Policy policy = prefetch_policy();
    LegacySettings legacy = {};
  };

  Master master;
  Time now{};
  Bytes capacity;

  explicit MasterWorld(const Setup& setup)
      : master(setup.settings, setup.legacy, setup.policy, 1), capacity(kBlock * setup.blocks) {
    for (std::uint32_t n = 0; n < setup.nodes; ++n) join(NodeId{n}, 1);
  }
  MasterWorld() : MasterWorld(Setup{}) {}
  ~MasterWorld() { EXPECT_EQ(master.check(now), ""); }
  MasterWorld(const MasterWorld&) = delete;
  MasterWorld& operator=(const MasterWorld&) = delete;

  void join(NodeId n, std::uint32_t epoch) {
    master.register_client(n, epoch, now);
    EXPECT_TRUE(master.mount_segment(n, capacity, now).ok());
    EXPECT_EQ(master.mount_disk(n, true, now), Error::OK);
  }

  // -- objects -------------------------------------------------------------------------------------------------
  Result<std::vector<Allocation>> start_put(std::uint64_t n, const PutOptions& options = {}, Bytes size = kBlock) {
    return master.put_start(kNode0, key(n), size, options, now);
  }
  Error end_put(std::uint64_t n, std::uint64_t version = 0) { return master.put_end(kNode0, key(n), now, version); }
  /// In memory, complete, stamped `now`, never leased.
  void put(std::uint64_t n, const PutOptions& options = {}, Bytes size = kBlock) {
    ASSERT_TRUE(start_put(n, options, size).ok()) << "key " << n;
    ASSERT_EQ(end_put(n), Error::OK) << "key " << n;
  }
  void put_all(std::uint64_t first, std::uint64_t count, const PutOptions& options = {}) {
    for (std::uint64_t n = first; n < first + count; ++n) put(n, options);
  }
  /// Listed on the holder's SSD, as a rescan reports it: created when absent, never leased.
  void on_ssd(std::uint64_t first, std::uint64_t count = 1, NodeId holder = kNode0) {
    std::vector<OffloadReport> reports;
    for (std::uint64_t n = first; n < first + count; ++n) reports.push_back({key(n), kBlock, 0});
    ASSERT_EQ(master.notify_offload(holder, reports, now), Error::OK);
  }
  ObjectView view(std::uint64_t n) const { return master.query_read_only(kNode0, key(n)); }
  ObjectView get(std::uint64_t n) { return master.query(kNode0, key(n), now); }
  std::vector<bool> probe(std::uint64_t first, std::uint64_t count) {
    std::vector<ObjectKey> batch;
    for (std::uint64_t n = first; n < first + count; ++n) batch.push_back(key(n));
    std::vector<bool> out;
    master.exist(batch, now, out);
    return out;
  }
  Error remove(std::uint64_t n, bool force = false) { return master.remove(key(n), force, now); }
  /// Which of the keys first..first + count - 1 are in memory.
  std::vector<std::uint64_t> in_memory(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::uint64_t> list;
    for (std::uint64_t n = first; n < first + count; ++n)
      if (view(n).in_memory) list.push_back(n);
    return list;
  }
  Time lease(std::uint64_t n) const { return master.lease_timeout(key(n)); }

  // -- promotion -----------------------------------------------------------------------------------------------
  Error enrol(std::uint64_t n, NodeId caller = kNode0, PromotionTicket ticket = PromotionTicket::any) {
    return master.register_prefetch_task(caller, key(n), now, ticket);
  }
  Error allocate(std::uint64_t n, NodeId caller = kNode0, PromotionTicket ticket = PromotionTicket::any) {
    return master.promotion_alloc_start(caller, key(n), kBlock, now, ticket).error;
  }
  Error commit(std::uint64_t n, NodeId caller = kNode0, PromotionTicket ticket = PromotionTicket::any) {
    return master.notify_promotion_success(caller, key(n), now, ticket);
  }
  Error fail(std::uint64_t n, NodeId caller = kNode0, PromotionTicket ticket = PromotionTicket::any) {
    return master.notify_promotion_failure(caller, key(n), now, ticket);
  }
  Error promote(std::uint64_t n) {
    if (const Error e = enrol(n); e != Error::OK) return e;
    if (const Error e = allocate(n); e != Error::OK) return e;
    return commit(n);
  }
  std::vector<std::uint64_t> pull(NodeId holder = kNode0) {
    std::vector<PromotionTask> tasks;
    master.pull_promotions(holder, now, tasks);
    std::vector<std::uint64_t> list;
    for (const PromotionTask& t : tasks) list.push_back(t.key.key.low);
    return list;
  }

  // -- offload -------------------------------------------------------------------------------------------------
  std::vector<OffloadTask> pull_offloads(NodeId holder = kNode0, bool accepting = true) {
    std::vector<OffloadTask> tasks;
    EXPECT_EQ(master.pull_offloads(holder, accepting, now, tasks), Error::OK);
    return tasks;
  }
  /// One report; whether its bytes are listed.
  bool report(std::uint64_t n, std::uint64_t version, Bytes size = kBlock, NodeId holder = kNode0) {
    const std::vector<OffloadReport> reports{{key(n), size, version}};
    std::vector<bool> accepted;
    EXPECT_EQ(master.notify_offload(holder, reports, now, &accepted), Error::OK);
    return accepted.at(0);
  }

  // -- time ----------------------------------------------------------------------------------------------------
  void advance(Duration d) { now = now + d; }
  void tick() {
    master.tick(now);
    ASSERT_EQ(master.check(now), "");
  }
  /// Ticks exactly where the master asks for them, up to and including `until`.
  void run_to(Duration until) {
    for (Time due = master.next_tick(now); due <= at(until); due = master.next_tick(now)) {
      now = due;
      tick();
    }
    now = at(until);
  }

  const MasterCounters& counters() const { return master.counters(); }
  std::int64_t in_flight() const { return master.promotions_in_flight(); }
  std::int64_t used_blocks() const { return master.dram(now).allocated.value / kBlock.value; }
};

}  // namespace kvlift
