// Who grants a lease, how long it is, and what never grants one.
#include <gtest/gtest.h>

#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;
using Moment = Policy::LeaseMoment;
using Probe = Policy::ProbeLease;

constexpr Duration kTtl = seconds(10);

TEST(Lease, a_probe_and_a_query_grant_the_full_ttl_on_memory_and_on_ssd) {
  MasterWorld w;
  w.advance(seconds(5));
  w.put(1);
  w.on_ssd(2);
  EXPECT_EQ(w.probe(1, 2), (std::vector{true, true}));
  EXPECT_EQ(w.lease(1), w.now + kTtl);
  EXPECT_EQ(w.lease(2), w.now + kTtl);
  w.advance(seconds(1));
  EXPECT_EQ(w.get(1).lease, kTtl);
  EXPECT_EQ(w.get(2).lease, kTtl);
  EXPECT_EQ(w.lease(1), w.now + kTtl);
  EXPECT_EQ(w.lease(2), w.now + kTtl);
  EXPECT_EQ(w.counters().leases_granted, 4u);
}

TEST(Lease, never_shrinks) {
  MasterWorld w;
  w.put(1);
  w.now = at(seconds(5));
  (void)w.get(1);
  w.now = at(seconds(2));  // a clock that was late
  (void)w.get(1);
  (void)w.probe(1, 1);
  EXPECT_EQ(w.lease(1), at(seconds(15)));
}

TEST(Lease, a_put_that_ends_stamps_its_object_without_leasing_it) {
  MasterWorld w;
  w.advance(seconds(3));
  w.put(1);
  EXPECT_EQ(w.lease(1), w.now);
  EXPECT_EQ(w.remove(1), Error::OK) << "not under lease";
}

TEST(Lease, an_object_that_cannot_be_read_gets_none) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  EXPECT_EQ(w.probe(1, 2), (std::vector{false, false}));
  EXPECT_EQ(w.get(1).error, Error::REPLICA_IS_NOT_READY);
  EXPECT_EQ(w.get(2).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.get(1).lease, Duration{});
  EXPECT_EQ(w.lease(1), kLongAgo);
  EXPECT_EQ(w.counters().leases_granted, 0u);
}

// -- the read-only query ------------------------------------------------------------------------------------------

TEST(ReadOnlyQuery, grants_no_lease) {
  MasterWorld w;
  w.on_ssd(1);
  EXPECT_EQ(w.view(1).lease, Duration{}) << "so that it cannot feed a transfer (RC-29)";
  EXPECT_EQ(w.lease(1), kLongAgo);
}

TEST(ReadOnlyQuery, starts_no_promotion) {
  MasterSettings s = quiet_settings();
  s.promotion_admission_threshold = 1;
  MasterWorld w({.settings = s, .policy = on_hit_policy()});
  w.on_ssd(1);
  for (int i = 0; i < 5; ++i) (void)w.view(1);
  EXPECT_EQ(w.in_flight(), 0);
  (void)w.get(1);
  EXPECT_EQ(w.in_flight(), 1) << "the leasing query does";
}

TEST(ReadOnlyQuery, counts_nothing_and_changes_nothing) {
  MasterWorld w;
  w.put(1);
  w.on_ssd(1, 2);
  const MasterCounters before = w.counters();
  const std::uint64_t hash = w.master.hash();
  for (std::uint64_t n = 1; n < 4; ++n) (void)w.view(n);
  EXPECT_EQ(w.counters(), before);
  EXPECT_EQ(w.master.hash(), hash);
}

TEST(ReadOnlyQuery, tells_the_same_replicas_as_the_leasing_one) {
  MasterWorld w({.nodes = 2});
  w.put(1, {.replica_num = 2});
  w.on_ssd(1);
  w.on_ssd(2, 1, kNode1);
  ASSERT_TRUE(w.start_put(3).ok());
  for (std::uint64_t n = 1; n <= 4; ++n) {
    for (const NodeId reader : {kNode0, kNode1}) {
      const ObjectView quiet = w.master.query_read_only(reader, key(n));
      const ObjectView leased = w.master.query(reader, key(n), w.now);
      EXPECT_EQ(quiet.error, leased.error) << n;
      EXPECT_EQ(quiet.in_memory, leased.in_memory) << n;
      EXPECT_EQ(quiet.memory, leased.memory) << n;
      EXPECT_EQ(quiet.on_disk, leased.on_disk) << n;
      EXPECT_EQ(quiet.holder, leased.holder) << n;
      EXPECT_EQ(quiet.size, leased.size) << n;
      if (quiet.in_memory) {
        EXPECT_EQ(quiet.memory.node, reader) << "the nearest";
      }
    }
  }
}

// -- lease policies of the probe ----------------------------------------------------------------------------------

struct ProbeCase {
  const char* name;
  Probe policy;
  std::vector<std::uint64_t> leased;
};

class ProbeLease : public testing::TestWithParam<ProbeCase> {};

TEST_P(ProbeLease, leases_what_its_policy_names) {
  Policy policy = prefetch_policy();
  policy.probe_lease = GetParam().policy;
  MasterWorld w({.policy = policy});
  w.on_ssd(0, 6);
  ASSERT_EQ(w.remove(3), Error::OK);  // there: 0 1 2 - 4 5
  EXPECT_EQ(w.probe(0, 6), (std::vector{true, true, true, false, true, true})) << "the answer is the same for all";
  std::vector<std::uint64_t> leased;
  for (std::uint64_t n = 0; n < 6; ++n)
    if (w.lease(n) == w.now + kTtl) leased.push_back(n);
  EXPECT_EQ(leased, GetParam().leased);
}

INSTANTIATE_TEST_SUITE_P(Table, ProbeLease,
                         testing::Values(ProbeCase{"every_hit", Probe::every_hit, {0, 1, 2, 4, 5}},
                                         ProbeCase{"none", Probe::none, {}},
                                         ProbeCase{"last_hit_only", Probe::last_hit_only, {2}},
                                         ProbeCase{"longest_prefix", Probe::longest_prefix, {0, 1, 2}}),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(ProbeLeaseEdge, a_batch_whose_first_key_is_missing_has_no_prefix) {
  for (const Probe p : {Probe::last_hit_only, Probe::longest_prefix}) {
    Policy policy = prefetch_policy();
    policy.probe_lease = p;
    MasterWorld w({.policy = policy});
    w.on_ssd(1, 3);
    (void)w.probe(0, 4);
    EXPECT_EQ(w.counters().leases_granted, 0u);
  }
}

TEST(ProbeLeaseEdge, an_empty_batch_is_answered_by_an_empty_one) {
  MasterWorld w;
  EXPECT_TRUE(w.probe(0, 0).empty());
}

// -- leases of promotions -----------------------------------------------------------------------------------------

TEST(PromotionLease, a_failed_promotion_leaves_none) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.lease(1), kLongAgo) << "none at registration";
  ASSERT_EQ(w.allocate(1), Error::OK);
  EXPECT_EQ(w.lease(1), kLongAgo);
  ASSERT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.lease(1), kLongAgo);
  EXPECT_EQ(w.counters().leases_granted, 0u);
}

TEST(PromotionLease, without_the_policy_a_commit_grants_none) {
  Policy policy = prefetch_policy();
  policy.lease = Moment::none;
  MasterWorld w({.policy = policy});
  w.on_ssd(1);
  ASSERT_EQ(w.promote(1), Error::OK);
  EXPECT_EQ(w.lease(1), kLongAgo);
}

TEST(PromotionLease, at_the_commit_is_for_prefetch_tasks_only) {
  MasterSettings s = quiet_settings();
  s.promotion_on_hit = true;  // beside prefetch
  s.promotion_admission_threshold = 1;
  MasterWorld w({.settings = s});
  w.on_ssd(1, 2);
  (void)w.get(1);
  ASSERT_EQ(w.pull(), (std::vector<std::uint64_t>{1}));
  w.advance(seconds(60));
  ASSERT_EQ(w.allocate(1), Error::OK);
  ASSERT_EQ(w.commit(1), Error::OK);
  EXPECT_EQ(w.lease(1), at(kTtl)) << "only the query's lease, long over";
  ASSERT_EQ(w.promote(2), Error::OK);
  EXPECT_EQ(w.lease(2), w.now + kTtl);
}

TEST(PromotionLease, at_the_commit_does_not_shorten_a_longer_one) {
  MasterWorld w;
  w.on_ssd(1);
  w.now = at(seconds(10));
  (void)w.probe(1, 1);
  w.now = at(seconds(5));
  ASSERT_EQ(w.promote(1), Error::OK);
  EXPECT_EQ(w.lease(1), at(seconds(20)));
}

// I3 is what this moment gives up: that is why the RFC leases at the commit.
TEST(PromotionLease, granted_at_enqueue_dangles_after_a_failure) {
  Policy policy = prefetch_policy();
  policy.lease = Moment::enqueue;
  MasterWorld w({.policy = policy});
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.lease(1), w.now + kTtl);
  ASSERT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.lease(1), w.now + kTtl);
  EXPECT_EQ(w.remove(1), Error::OBJECT_HAS_LEASE) << "nobody holds it, and still it blocks";
}

TEST(PromotionLease, granted_at_enqueue_is_not_renewed_by_the_commit) {
  Policy policy = prefetch_policy();
  policy.lease = Moment::enqueue;
  MasterWorld w({.policy = policy});
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  w.advance(seconds(4));
  ASSERT_EQ(w.allocate(1), Error::OK);
  ASSERT_EQ(w.commit(1), Error::OK);
  EXPECT_EQ(w.lease(1), at(kTtl));
}

// -- groups -------------------------------------------------------------------------------------------------------

TEST(GroupLease, members_follow_when_half_of_the_ttl_or_less_is_left) {
  struct Row {
    Duration after;
    bool follows;
  };
  for (const Row& row : {Row{seconds(5) - nanoseconds(1), false}, Row{seconds(5), true}, Row{seconds(9), true}}) {
    MasterWorld w;
    w.put_all(0, 2, {.group = GroupId{3}});
    w.put(2);
    (void)w.probe(0, 3);
    w.advance(row.after);
    (void)w.get(0);
    EXPECT_EQ(w.lease(0), w.now + kTtl) << "the one asked for is renewed in full";
    EXPECT_EQ(w.lease(1), row.follows ? w.now + kTtl : at(kTtl)) << to_milliseconds(row.after);
    EXPECT_EQ(w.lease(2), at(kTtl)) << "not of the group";
  }
}

TEST(GroupLease, members_that_left_are_forgotten) {
  MasterWorld w;
  w.put_all(0, 3, {.group = GroupId{3}});
  ASSERT_EQ(w.remove(1), Error::OK);
  w.put(1);  // in the removed one's slot, in no group
  (void)w.get(0);
  EXPECT_EQ(w.lease(2), w.now + kTtl);
  EXPECT_EQ(w.lease(1), w.now);
}

TEST(GroupLease, a_commit_leases_the_group) {
  MasterWorld w;
  w.put_all(0, 2, {.group = GroupId{3}});
  w.on_ssd(0, 2);
  ASSERT_TRUE(w.start_put(5, {}, kBlock * 100).error == Error::NO_AVAILABLE_HANDLE);
  w.advance(seconds(20));
  w.tick();  // the refused put evicts
  ASSERT_TRUE(w.in_memory(0, 2).empty());
  ASSERT_EQ(w.promote(0), Error::OK);
  EXPECT_EQ(w.lease(0), w.now + kTtl);
  EXPECT_EQ(w.lease(1), w.now + kTtl);
}

}  // namespace
}  // namespace kvlift
