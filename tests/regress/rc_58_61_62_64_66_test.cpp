// RC-58: a holder came back under another address. RC-61, 62, 64, 66: whom eviction counts, and whom it takes.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

MasterWorld::Setup evicting(double high) {
  MasterWorld::Setup s{.blocks = 20};
  s.settings.eviction_high_watermark_ratio = high;
  return s;
}

TEST(RC58, a_holder_that_restarted_is_listed_with_its_new_incarnation) {
  MasterWorld w({.nodes = 2});
  w.on_ssd(1);
  EXPECT_EQ(w.view(1).holder_epoch, 1u);
  w.master.register_client(kNode0, 2, w.now);
  ASSERT_EQ(w.master.mount_disk(kNode0, true, w.now), Error::OK);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND) << "until its rescan";
  w.on_ssd(1);
  EXPECT_EQ(w.view(1).holder, kNode0);
  EXPECT_EQ(w.view(1).holder_epoch, 2u);
}

TEST(RC58, an_object_whose_old_holder_is_gone_is_taken_over_by_the_node_that_has_it) {
  MasterWorld w({.nodes = 2});
  w.put(1);
  w.on_ssd(1, 1, kNode0);
  w.on_ssd(1, 1, kNode1);
  EXPECT_EQ(w.view(1).holder, kNode0) << "one copy is listed while its holder lives";
  ASSERT_EQ(w.master.drain_disk(kNode0, w.now), Error::OK);
  w.on_ssd(1, 1, kNode1);
  EXPECT_EQ(w.view(1).holder, kNode1);
}

TEST(RC61, objects_on_ssd_only_are_not_in_the_base) {
  MasterWorld w(evicting(0.75));
  for (std::uint64_t k = 0; k < 16; ++k) {
    w.put(k);
    w.advance(milliseconds(1));
  }
  w.on_ssd(0, 1'000);  // 984 of them are on SSD only
  w.tick();
  // target 0.05 + 0.05: ceil(16 * 0.1) = 2, not ceil(1000 * 0.1) = 100
  EXPECT_EQ(w.counters().objects_evicted, 2u);
}

TEST(RC62, victims_that_free_nothing_are_replaced_and_a_cycle_without_victims_is_not_repeated_in_vain) {
  MasterWorld::Setup setup = evicting(0.75);
  setup.settings.enable_offload = setup.settings.offload_on_evict = true;
  MasterWorld w(setup);
  ASSERT_TRUE(w.pull_offloads(kNode0, false).empty());  // nothing can be saved
  for (std::uint64_t k = 0; k < 16; ++k) {
    w.put(k);
    if (k >= 14) w.on_ssd(k);
    w.advance(milliseconds(1));
  }
  w.tick();
  EXPECT_EQ(w.counters().objects_evicted, 2u);
  EXPECT_EQ(w.in_memory(14, 2).size(), 0u) << "the two that can go, however young";
  EXPECT_EQ(w.counters().objects_lost, 0u);
}

TEST(RC62, a_leased_pool_is_not_polled) {
  MasterWorld w(evicting(0.5));
  w.put_all(0, 20);
  (void)w.probe(0, 20);
  w.run_to(milliseconds(9'999));
  EXPECT_LE(w.counters().eviction_cycles, 2u) << "not one each 10 ms";
}

TEST(RC64, restored_objects_are_not_the_first_victims) {
  MasterWorld w(evicting(0.5));
  w.put_all(0, 9);
  w.on_ssd(0, 9);
  w.run_to(seconds(100));
  w.master.restart(true, w.now);
  w.put_all(100, 4);
  w.on_ssd(100, 4);
  w.run_to(seconds(101));
  EXPECT_EQ(w.in_memory(0, 9).size(), 9u);
  EXPECT_LT(w.in_memory(100, 4).size(), 4u) << "the new ones carry no lease";
  w.put_all(200, 5);
  (void)w.probe(200, 5);
  w.run_to(seconds(111));
  EXPECT_LT(w.in_memory(0, 9).size(), 9u) << "one TTL of grace, not for ever";
}

TEST(RC66, a_full_segment_makes_room_although_the_pool_is_nearly_empty) {
  for (const bool per_segment : {false, true}) {
    MasterWorld::Setup setup = evicting(0.9);
    setup.settings.eviction_per_segment = per_segment;
    setup.settings.allocation_strategy = AllocationStrategy::local_first;
    MasterWorld w(setup);
    w.master.register_client(kNode1, 1, w.now);
    ASSERT_TRUE(w.master.mount_segment(kNode1, kBlock * 200, w.now).ok());
    w.put_all(0, 20, {.preferred = kNode0});
    w.run_to(seconds(1));
    EXPECT_EQ(w.used_blocks() < 20, per_segment);
  }
}

}  // namespace
}  // namespace kvlift
