// RC-32, 35, 36, 38, 42, 45, 47: what holders report, and what the master lists of it.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

MasterWorld::Setup offloading() {
  MasterWorld::Setup s;
  s.settings.enable_offload = true;
  return s;
}

TEST(RC32, a_refused_key_of_a_batch_is_released_alone_and_the_others_are_listed) {
  MasterWorld w(offloading());
  w.put_all(1, 3);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 3u);
  const std::vector<OffloadReport> reports{
      {key(1), kBlock, tasks[0].version}, {key(2), {-1}, tasks[1].version}, {key(3), kBlock, tasks[2].version}};
  std::vector<bool> accepted;
  ASSERT_EQ(w.master.notify_offload(kNode0, reports, w.now, &accepted), Error::OK);
  EXPECT_EQ(accepted, (std::vector{true, false, true}));
  EXPECT_TRUE(w.view(1).on_disk);
  EXPECT_FALSE(w.view(2).on_disk);
  EXPECT_TRUE(w.view(3).on_disk);
  EXPECT_EQ(w.counters().offload_nacked, 1u);
  w.run_to(seconds(700));
  EXPECT_EQ(w.counters().offloads_reaped, 0u) << "nothing was left to expire";
  EXPECT_EQ(w.remove(2), Error::OK);
}

TEST(RC32, a_report_that_never_comes_pins_its_source_for_600_s_exactly) {
  MasterWorld::Setup setup = offloading();
  setup.settings.eviction_high_watermark_ratio = 0.001;
  MasterWorld w(setup);
  w.put(1);
  ASSERT_EQ(w.pull_offloads().size(), 1u);
  w.run_to(seconds(600) - nanoseconds(1));
  EXPECT_TRUE(w.view(1).in_memory);
  w.run_to(seconds(600));
  EXPECT_EQ(w.counters().offloads_reaped, 1u);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND) << "unpinned, and evicted in the same tick";
}

TEST(RC35, a_key_that_is_on_ssd_already_counts_as_done_and_the_rest_of_the_cycle_goes_on) {
  MasterWorld w(offloading());
  w.put_all(1, 2);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 2u);
  w.on_ssd(1);  // a rescan was faster
  EXPECT_TRUE(w.report(1, tasks[0].version));
  EXPECT_TRUE(w.report(2, tasks[1].version));
  EXPECT_TRUE(w.view(2).on_disk);
}

TEST(RC36, a_holder_that_was_full_gets_work_again_when_it_accepts_again) {
  MasterWorld w(offloading());
  w.put(1);
  EXPECT_TRUE(w.pull_offloads(kNode0, false).empty()) << "the disk is full: what was queued is released";
  w.put(2);
  EXPECT_EQ(w.counters().offload_refused, 1u);
  EXPECT_TRUE(w.pull_offloads(kNode0, true).empty());
  w.put(3);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].key, key(3));
}

TEST(RC38, a_replica_that_left_the_ssd_is_not_listed_any_more) {
  MasterWorld w;
  w.put(1);
  w.on_ssd(1, 2);
  const std::vector<ObjectKey> gone{key(1), key(2), key(77)};
  ASSERT_EQ(w.master.evict_disk_replicas(kNode0, gone, w.now), Error::OK);
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_FALSE(w.view(1).on_disk);
  EXPECT_EQ(w.view(2).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.counters().disk_replicas_evicted, 2u);
  EXPECT_EQ(w.counters().objects_lost, 1u);
}

TEST(RC38, one_holder_cannot_unlist_the_replica_of_another) {
  MasterWorld w({.nodes = 2});
  w.on_ssd(1, 1, kNode0);
  const std::vector<ObjectKey> gone{key(1)};
  ASSERT_EQ(w.master.evict_disk_replicas(kNode1, gone, w.now), Error::OK);
  EXPECT_TRUE(w.view(1).on_disk);
}

TEST(RC42, an_upsert_is_refused_while_the_old_bytes_are_being_written_to_ssd) {
  MasterWorld w(offloading());
  w.put(1);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(w.master.upsert_start(kNode0, key(1), kBlock, {}, w.now).error, Error::OBJECT_HAS_REPLICATION_TASK);
  EXPECT_TRUE(w.report(1, tasks[0].version));
  EXPECT_TRUE(w.master.upsert_start(kNode0, key(1), kBlock, {}, w.now).ok());
}

TEST(RC42, bytes_of_an_older_version_are_never_listed_for_a_newer_one) {
  MasterWorld w(offloading());
  w.put(1);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  ASSERT_EQ(w.remove(1), Error::OK);
  w.put(1);  // same key, same size, other bytes
  EXPECT_FALSE(w.report(1, tasks[0].version));
  EXPECT_FALSE(w.view(1).on_disk);
  const auto young = w.pull_offloads();
  ASSERT_EQ(young.size(), 1u) << "the late report did not end the younger offload";
  EXPECT_TRUE(w.report(1, young[0].version));
}

TEST(RC42, a_report_for_an_object_that_was_removed_does_not_bring_it_back) {
  MasterWorld w(offloading());
  w.put(1);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(w.remove(1), Error::OK);
  EXPECT_FALSE(w.report(1, tasks.at(0).version));
  EXPECT_EQ(w.master.object_count(), 0);
}

TEST(RC42, a_rescan_does_not_list_old_bytes_under_a_running_put) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  EXPECT_FALSE(w.report(1, 0));
  ASSERT_EQ(w.end_put(1), Error::OK);
  EXPECT_FALSE(w.view(1).on_disk);
}

TEST(RC45, bytes_of_another_length_are_not_listed) {
  MasterWorld w(offloading());
  w.put(1);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_FALSE(w.report(1, tasks[0].version, {0}));
  EXPECT_FALSE(w.view(1).on_disk);
  EXPECT_TRUE(w.view(1).in_memory) << "the copy in memory stays the only one";
}

TEST(RC47, handing_out_and_reporting_an_offload_grants_no_lease) {
  MasterWorld w(offloading());
  w.put(1);
  w.advance(seconds(1));
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(w.lease(1), at(Duration{}));
  EXPECT_TRUE(w.report(1, tasks[0].version));
  EXPECT_EQ(w.lease(1), at(Duration{})) << "still the stamp of its put";
  EXPECT_EQ(w.counters().leases_granted, 0u);
}

}  // namespace
}  // namespace kvlift
