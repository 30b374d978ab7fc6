// RC-17, RC-48, RC-70: probes that renew leases keep DRAM full of what nobody will read.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

/// 20 of 20 blocks in use and on SSD; the watermark is 0.6.
MasterWorld::Setup full(Policy::ProbeLease lease = Policy::ProbeLease::every_hit) {
  MasterWorld::Setup s{.blocks = 20};
  s.settings.eviction_high_watermark_ratio = 0.6;
  s.policy.probe_lease = lease;
  return s;
}

/// What is left in memory after ten minutes in which somebody looks at all keys every five seconds.
template <class Look>
std::size_t left_after(MasterWorld& w, Look look) {
  w.put_all(0, 20);
  w.on_ssd(0, 20);
  for (int round = 0; round < 120; ++round) {
    look();
    w.run_to(seconds(5 * (round + 1)));
  }
  return w.in_memory(0, 20).size();
}

TEST(RC17, an_observer_that_does_not_lease_sees_the_eviction) {
  MasterWorld w(full());
  EXPECT_LE(left_after(w, [&] { (void)w.in_memory(0, 20); }), 12u);
}

TEST(RC17, an_observer_that_leases_prevents_what_it_waits_for) {
  MasterWorld w(full());
  EXPECT_EQ(left_after(w,
                       [&] {
                         for (std::uint64_t k = 0; k < 20; ++k) (void)w.get(k);
                       }),
            20u);
  EXPECT_EQ(w.counters().objects_evicted, 0u);
}

TEST(RC48, probes_that_lease_every_hit_pin_the_resident_set) {
  MasterWorld w(full());
  EXPECT_EQ(left_after(w, [&] { (void)w.probe(0, 20); }), 20u);
  EXPECT_EQ(w.start_put(50).error, Error::NO_AVAILABLE_HANDLE);
}

TEST(RC48, probes_that_lease_nothing_let_eviction_work) {
  MasterWorld w(full(Policy::ProbeLease::none));
  EXPECT_LE(left_after(w, [&] { (void)w.probe(0, 20); }), 12u);
  EXPECT_TRUE(w.start_put(50).ok());
}

TEST(RC48, probes_that_lease_what_will_be_read_pin_only_that) {
  MasterWorld w(full(Policy::ProbeLease::longest_prefix));
  const auto look = [&] {
    std::vector<ObjectKey> batch{key(0), key(1), key(99)};
    for (std::uint64_t k = 2; k < 20; ++k) batch.push_back(key(k));
    std::vector<bool> out;
    w.master.exist(batch, w.now, out);
  };
  EXPECT_LE(left_after(w, look), 12u);
  EXPECT_TRUE(w.view(0).in_memory && w.view(1).in_memory);
}

TEST(RC70, the_share_under_lease_and_the_promotions_refused_for_it_are_visible) {
  MasterWorld w(full());
  w.put_all(0, 20);
  w.on_ssd(0, 25);
  (void)w.probe(0, 20);
  w.run_to(milliseconds(50));
  for (std::uint64_t k = 20; k < 25; ++k) {
    ASSERT_EQ(w.enrol(k), Error::OK);
    ASSERT_EQ(w.allocate(k), Error::NO_AVAILABLE_HANDLE);
    ASSERT_EQ(w.fail(k), Error::OK);
  }
  const DramUsage usage = w.master.dram(w.now);
  EXPECT_EQ(usage.leased, usage.capacity);
  EXPECT_EQ(usage.unevictable, usage.capacity);
  EXPECT_EQ(w.counters().promotion_no_handle, 5u);
  EXPECT_GT(w.counters().eviction_cycles_fruitless, 0u);
}

}  // namespace
}  // namespace kvlift
