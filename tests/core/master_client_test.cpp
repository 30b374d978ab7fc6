// Clients come, die and come back; the master restarts. Whatever ends then ends once and keeps nothing pinned.
#include <gtest/gtest.h>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;

MasterWorld::Setup mortal(LegacySettings legacy = {}) {
  MasterWorld::Setup s{.blocks = 10, .nodes = 2, .legacy = legacy};
  s.settings.client_ttl = seconds(10);
  s.settings.allocation_strategy = AllocationStrategy::local_first;
  return s;
}

/// Runs to `until` while the node pings each second.
void live(MasterWorld& w, NodeId node, Duration until) {
  while (w.now + seconds(1) < at(until)) {
    w.run_to(w.now - Time{} + seconds(1));
    ASSERT_TRUE(w.master.ping(node, w.now));
  }
  w.run_to(until);
}

TEST(Client, is_forgotten_when_more_than_its_ttl_has_passed_since_its_last_ping) {
  MasterWorld w(mortal());
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(10'010)) << "the first grid point after 10 s and a nanosecond";
  w.now = at(seconds(10));
  w.tick();
  EXPECT_TRUE(w.master.ping(kNode0, w.now));
  w.now = w.now + nanoseconds(1);
  w.tick();
  EXPECT_FALSE(w.master.ping(kNode1, w.now));
  EXPECT_TRUE(w.master.ping(kNode0, w.now));
  EXPECT_EQ(w.counters().clients_expired, 1u);
}

TEST(Client, what_it_kept_in_memory_and_on_ssd_goes_with_it) {
  MasterWorld w(mortal());
  w.put(1, {.preferred = kNode1});
  w.put(2, {.preferred = kNode0});
  w.on_ssd(3, 1, kNode1);
  w.on_ssd(4, 1, kNode0);
  w.put(5, {.preferred = kNode0});
  w.on_ssd(5, 1, kNode1);
  live(w, kNode0, seconds(11));
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_TRUE(w.view(2).in_memory);
  EXPECT_EQ(w.view(3).error, Error::OBJECT_NOT_FOUND);
  EXPECT_TRUE(w.view(4).on_disk);
  EXPECT_TRUE(w.view(5).in_memory);
  EXPECT_FALSE(w.view(5).on_disk);
  EXPECT_EQ(w.counters().objects_lost, 2u) << "keys 1 and 3";
  EXPECT_EQ(w.master.dram(w.now).capacity, w.capacity);
}

TEST(Client, an_unknown_one_can_mount_and_report_nothing) {
  MasterWorld w(mortal());
  EXPECT_EQ(w.master.mount_segment(kStranger, kBlock, w.now).error, Error::SEGMENT_NOT_FOUND);
  EXPECT_EQ(w.master.mount_disk(kStranger, true, w.now), Error::SEGMENT_NOT_FOUND);
  EXPECT_EQ(w.master.drain_disk(kStranger, w.now), Error::SEGMENT_NOT_FOUND);
  const std::vector<OffloadReport> reports{{key(1), kBlock, 0}};
  EXPECT_EQ(w.master.notify_offload(kStranger, reports, w.now), Error::SEGMENT_NOT_FOUND);
  std::vector<OffloadTask> tasks;
  EXPECT_EQ(w.master.pull_offloads(kStranger, true, w.now, tasks), Error::SEGMENT_NOT_FOUND);
  EXPECT_FALSE(w.master.ping(kStranger, w.now));
  EXPECT_EQ(w.master.object_count(), 0);
}

TEST(Client, mounts_once) {
  MasterWorld w(mortal());
  EXPECT_EQ(w.master.mount_segment(kNode0, kBlock, w.now).error, Error::SEGMENT_ALREADY_EXISTS);
  EXPECT_EQ(w.master.mount_disk(kNode0, true, w.now), Error::SEGMENT_ALREADY_EXISTS);
  ASSERT_EQ(w.master.unmount_segment(SegmentId{0}, w.now), Error::OK);
  EXPECT_EQ(w.master.unmount_segment(SegmentId{0}, w.now), Error::SEGMENT_NOT_FOUND);
  EXPECT_EQ(w.master.unmount_segment(SegmentId::none, w.now), Error::SEGMENT_NOT_FOUND);
  const auto again = w.master.mount_segment(kNode0, kBlock, w.now);
  EXPECT_TRUE(again.ok());
  EXPECT_NE(again.value, SegmentId{0}) << "a late transfer must not hit a new mount";
  EXPECT_EQ(w.master.mount_segment(kNode1, {0}, w.now).error, Error::INVALID_PARAMS);
}

TEST(Client, that_registers_again_with_the_same_epoch_keeps_what_it_has) {
  MasterWorld w(mortal());
  w.put(1, {.preferred = kNode1});
  w.master.register_client(kNode1, 1, w.now);
  EXPECT_TRUE(w.view(1).in_memory);
}

// -- tasks of a dead holder (RC-23) -------------------------------------------------------------------------------

/// Node 1 holds key 1 and dies with an allocated task, whose room is on node 0.
void die_with_task(MasterWorld& w) {
  w.on_ssd(1, 1, kNode1);
  w.put(1'000, {.preferred = kNode0});
  ASSERT_EQ(w.enrol(1, kNode1), Error::OK);
  ASSERT_EQ(w.master.unmount_segment(SegmentId{1}, w.now), Error::OK);  // so the staged copy is on node 0
  ASSERT_EQ(w.allocate(1, kNode1), Error::OK);
  ASSERT_EQ(w.used_blocks(), 2);
  live(w, kNode0, seconds(11));
}

TEST(ClientExpiry, ends_its_tasks_at_once_and_quarantines_the_bytes_it_may_still_write) {
  MasterWorld w(mortal());
  die_with_task(w);
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.counters().promotion_cancelled, 1u);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.used_blocks(), 2) << "parked";
  live(w, kNode0, milliseconds(599'990));
  EXPECT_EQ(w.used_blocks(), 2);
  live(w, kNode0, seconds(600));
  EXPECT_EQ(w.used_blocks(), 1);
  EXPECT_EQ(w.counters().promotion_expired, 0u) << "ended once";
}

TEST(ClientExpiry, in_the_original_the_task_blocks_its_key_until_the_reaper) {
  MasterWorld w(mortal({.tasks_outlive_clients = true}));
  die_with_task(w);
  EXPECT_EQ(w.in_flight(), 1);
  w.join(kNode1, 2);
  ASSERT_TRUE(w.master.ping(kNode0, w.now));
  w.on_ssd(1, 1, kNode1);
  EXPECT_EQ(w.enrol(1, kNode1), Error::PROMOTION_ALREADY_EXISTS);
  while (w.now < at(seconds(601))) {
    live(w, kNode0, w.now - Time{} + seconds(2));
    (void)w.master.ping(kNode1, w.now);
  }
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.counters().promotion_expired, 1u);
  EXPECT_EQ(w.enrol(1, kNode1), Error::OK);
}

TEST(ClientExpiry, of_another_node_leaves_a_task_alone_unless_its_room_was_there) {
  MasterWorld w(mortal());
  w.on_ssd(1, 2, kNode0);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.enrol(2), Error::OK);
  const auto placed = w.master.promotion_alloc_start(kNode0, key(2), kBlock, w.now);
  ASSERT_TRUE(placed.ok());
  live(w, kNode0, seconds(11));
  EXPECT_TRUE(w.master.has_promotion_task(key(1)));
  EXPECT_EQ(w.master.has_promotion_task(key(2)), placed.value.node == kNode0);
}

TEST(ClientExpiry, a_late_commit_of_a_forgotten_holder_is_refused) {
  MasterWorld w(mortal());
  w.put(1, {.preferred = kNode0});
  w.on_ssd(2, 1, kNode1);
  ASSERT_EQ(w.enrol(2, kNode1), Error::OK);
  ASSERT_EQ(w.allocate(2, kNode1), Error::OK);
  live(w, kNode0, seconds(11));
  EXPECT_EQ(w.commit(2, kNode1), Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.fail(2, kNode1), Error::OK);
  EXPECT_EQ(w.in_flight(), 0);
}

TEST(Drain, withdraws_the_disk_and_leaves_the_memory) {
  MasterWorld w(mortal());
  w.put(1, {.preferred = kNode1});
  w.on_ssd(1, 2, kNode1);
  ASSERT_EQ(w.master.drain_disk(kNode1, w.now), Error::OK);
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_FALSE(w.view(1).on_disk);
  EXPECT_EQ(w.view(2).error, Error::OBJECT_NOT_FOUND);
  EXPECT_TRUE(w.master.ping(kNode1, w.now));
  EXPECT_EQ(w.master.mount_disk(kNode1, true, w.now), Error::OK) << "and may come back";
}

// -- the reaper of promotions -------------------------------------------------------------------------------------

TEST(PromotionReaper, drops_a_registered_task_at_exactly_its_timeout) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  w.now = at(seconds(600) - nanoseconds(1));
  w.tick();
  EXPECT_EQ(w.in_flight(), 1);
  w.now = at(seconds(600));
  w.tick();
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.counters().promotion_expired, 1u);
  EXPECT_EQ(w.enrol(1), Error::OK);
}

TEST(PromotionReaper, measures_an_allocated_task_from_its_allocation) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  w.run_to(seconds(500));
  ASSERT_EQ(w.allocate(1), Error::OK);
  w.run_to(seconds(1'099));
  EXPECT_EQ(w.in_flight(), 1);
  w.run_to(seconds(1'100));
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.used_blocks(), 0);
  EXPECT_TRUE(w.view(1).on_disk);
  EXPECT_EQ(w.lease(1), kLongAgo);
}

TEST(PromotionReaper, works_on_its_own_clock_on_an_idle_master) {  // RC-23
  MasterWorld w;
  w.on_ssd(1);
  w.now = at_ms(5);
  ASSERT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(600'010)) << "not up to 1200 s";
}

TEST(PromotionReaper, leaves_a_younger_task_of_the_key_alone) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  w.run_to(seconds(300));
  ASSERT_EQ(w.fail(1), Error::OK);
  ASSERT_EQ(w.enrol(1), Error::OK);
  w.run_to(seconds(899));
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.counters().promotion_expired, 0u);
}

TEST(Reaper, an_idle_master_has_no_next_tick) {
  MasterWorld w;
  w.on_ssd(1);
  EXPECT_EQ(w.master.next_tick(w.now), kNever);
}

// -- restart of the master ----------------------------------------------------------------------------------------

/// Key 1 in memory, 2 on SSD, 3 with an allocated task, 4 a running put.
void busy(MasterWorld& w) {
  w.put(1);
  w.on_ssd(2, 2);
  ASSERT_EQ(w.enrol(3), Error::OK);
  ASSERT_EQ(w.allocate(3), Error::OK);
  ASSERT_TRUE(w.start_put(4).ok());
  w.run_to(seconds(100));
}

TEST(Restart, from_a_snapshot_keeps_complete_replicas_with_one_ttl_of_grace) {  // RC-64
  MasterWorld w;
  busy(w);
  w.master.restart(true, w.now);
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_TRUE(w.view(2).on_disk);
  EXPECT_FALSE(w.view(3).in_memory);
  EXPECT_EQ(w.view(4).error, Error::OBJECT_NOT_FOUND);
  for (std::uint64_t k = 1; k <= 3; ++k) EXPECT_EQ(w.lease(k), at(seconds(110))) << k;
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.counters().promotion_cancelled, 1u);
}

TEST(Restart, quarantines_what_the_lost_writes_may_still_hit) {
  MasterWorld w;
  busy(w);
  ASSERT_EQ(w.used_blocks(), 3);
  w.master.restart(true, w.now);
  EXPECT_EQ(w.used_blocks(), 3);
  w.run_to(seconds(600));
  EXPECT_EQ(w.used_blocks(), 1);
}

TEST(Restart, lost_tasks_end_once_and_their_keys_are_free) {
  MasterWorld w;
  busy(w);
  w.master.restart(true, w.now);
  EXPECT_EQ(w.commit(3), Error::REPLICA_IS_NOT_READY);
  EXPECT_EQ(w.fail(3), Error::OK);
  EXPECT_EQ(w.enrol(3), Error::OK);
  w.run_to(seconds(699));
  EXPECT_EQ(w.in_flight(), 1) << "the lost task's timer is gone";
  EXPECT_EQ(w.counters().promotion_expired, 0u);
}

TEST(Restart, without_a_snapshot_nothing_is_known_until_clients_report) {
  MasterWorld w;
  busy(w);
  w.master.restart(false, w.now);
  EXPECT_EQ(w.master.object_count(), 0);
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_FALSE(w.master.ping(kNode0, w.now));
  EXPECT_EQ(w.master.dram(w.now).capacity, Bytes{0});
  w.join(kNode0, 1);
  w.on_ssd(2, 2);
  EXPECT_TRUE(w.view(2).on_disk);
  EXPECT_EQ(w.promote(3), Error::OK);
}

// -- values -------------------------------------------------------------------------------------------------------

TEST(MasterValue, a_copy_goes_its_own_way) {
  MasterWorld w;
  w.on_ssd(1, 2);
  Master copy = w.master;
  EXPECT_EQ(copy.hash(), w.master.hash());
  ASSERT_EQ(w.promote(1), Error::OK);
  EXPECT_NE(copy.hash(), w.master.hash());
  EXPECT_FALSE(copy.query_read_only(kNode0, key(1)).in_memory);
  EXPECT_EQ(copy.check(w.now), "");
}

TEST(MasterValue, the_same_calls_give_the_same_state) {
  const auto play = [] {
    MasterWorld w({.blocks = 10, .nodes = 2});
    w.put_all(0, 20);
    w.on_ssd(0, 20);
    w.run_to(seconds(1));
    (void)w.promote(3);
    return w.master.hash();
  };
  EXPECT_EQ(play(), play());
}

TEST(MasterGauge, dram_tells_leased_and_unevictable_bytes_apart) {
  MasterWorld w;
  w.put_all(0, 4);
  w.put(4, {.hard_pin = true});
  ASSERT_TRUE(w.start_put(5).ok());
  (void)w.probe(0, 2);
  const DramUsage usage = w.master.dram(w.now);
  EXPECT_EQ(usage.capacity, w.capacity);
  EXPECT_EQ(usage.allocated, kBlock * 6);
  EXPECT_EQ(usage.leased, kBlock * 2);
  EXPECT_EQ(usage.unevictable, kBlock * 4) << "two leased, one pinned, one incomplete";
}

}  // namespace
}  // namespace kvlift
