// Offload rounds: buckets, reports, quota, eviction of the SSD.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

/// Objects stay in DRAM, so that only the SSD side moves.
StoreSetup roomy_store(std::int64_t nodes = 1) {
  StoreSetup setup = small_store(nodes, mebibytes(16));
  setup.plan.store.master.eviction_high_watermark_ratio = 1;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  return setup;
}

std::int64_t on_disk(const Store& store, std::uint64_t first, std::uint64_t count) {
  std::int64_t n = 0;
  for (const ObjectKey& k : keys(first, count)) n += store.view(k).on_disk ? 1 : 0;
  return n;
}

std::int64_t bytes_written(const Store& store) { return static_cast<std::int64_t>(store.counters().bytes_written_ssd); }

TEST(Offload, ATailThatFillsNoBucketIsWrittenInTime) {  // RC-31
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.bucket_keys = 10;
  setup.plan.store.holder.bucket_tail_flush = milliseconds(200);
  Store store(setup);
  store.put(kNode0, items(0, 35));
  store.run_for(milliseconds(400));
  EXPECT_EQ(on_disk(store, 0, 35), 35);
  EXPECT_EQ(store.counters().offload_buckets, 4U);
  expect_clean(store);
}

TEST(Offload, ASmallTailWaitsForItsTimeAndNoLonger) {
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.bucket_tail_flush = milliseconds(200);
  Store store(setup);
  store.put(kNode0, items(0, 3));
  store.run_for(milliseconds(150));
  EXPECT_EQ(on_disk(store, 0, 3), 0);
  store.run_for(milliseconds(150));
  EXPECT_EQ(on_disk(store, 0, 3), 3);
  EXPECT_EQ(store.counters().offload_buckets, 1U);
  expect_clean(store);
}

TEST(Offload, AKeyLeftOverAndPulledAgainIsWrittenOnce) {  // RC-34
  StoreSetup setup = small_store(1);                      // everything is evicted as soon as it may be
  setup.plan.store.master.offload_on_evict = true;
  setup.plan.store.master.put_start_release_timeout = milliseconds(100);  // the reaper takes tasks of the left-over
  setup.plan.store.holder.bucket_tail_flush = seconds(1);
  Store store(setup);
  store.put(kNode0, items(0, 3));
  store.run_for(seconds(2));
  ASSERT_GT(store.master_counters().offloads_reaped, 0U);
  EXPECT_EQ(on_disk(store, 0, 3), 3);
  EXPECT_EQ(bytes_written(store), kBlock.value * 3);
  expect_clean(store);
}

TEST(Offload, AKeyPutAnewWhileItsOldVersionIsLeftOverIsWrittenInItsNewVersion) {
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.bucket_tail_flush = milliseconds(500);
  Store store(setup);
  store.put(kNode0, items(0, 1));
  store.run_for(milliseconds(100));  // pulled: left over
  EXPECT_EQ(store.remove(kNode0, key(0)).error, Error::OK);
  store.put(kNode0, items(0, 1, kBlock * 2));
  store.run_for(seconds(2));
  EXPECT_EQ(on_disk(store, 0, 1), 1);
  EXPECT_EQ(bytes_written(store), kBlock.value * 2);
  expect_clean(store);
}

TEST(Offload, AKeyWhoseOldVersionIsOnTheSsdIsReadInItsNewVersion) {  // RC-35, RC-42
  Store store(small_store(1));
  store.to_ssd(kNode0, items(0, 2));
  EXPECT_EQ(store.remove(kNode0, key(0)).error, Error::OK);  // the holder is not told
  store.to_ssd(kNode0, items(0, 1, Bytes{kBlock.value / 2}));
  const OpResult get = store.get(kNode0, items(0, 2));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(get.keys[1].error, Error::OK);
  EXPECT_EQ(store.counters().staged_reads_failed, 0U);
  expect_clean(store);
}

TEST(Offload, AKeyThatIsOnTheSsdAlreadyHoldsNothingUp) {  // RC-35
  Store store(small_store(1));
  store.to_ssd(kNode0, items(0, 2));
  store.restart_master(false);
  store.put(kNode0, items(0, 4));
  ASSERT_TRUE(store.run_until([&] { return on_disk(store, 0, 4) == 4; }, seconds(60)));
  expect_clean(store);
}

TEST(Offload, AnObjectThatCannotBeWrittenIsTurnedDownAlone) {  // RC-32
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.bucket_bytes = kBlock * 4;
  Store store(setup);
  store.put(kNode0, {items(0, 1)[0], items(1, 1, kBlock * 5)[0], items(2, 1)[0]});
  store.run_for(seconds(1));
  EXPECT_TRUE(store.view(key(0)).on_disk);
  EXPECT_FALSE(store.view(key(1)).on_disk);
  EXPECT_TRUE(store.view(key(2)).on_disk);
  EXPECT_EQ(store.master_counters().offload_nacked, 1U);
  // Its source is free: what was turned down may be removed and evicted.
  EXPECT_EQ(store.remove(kNode0, key(1)).error, Error::OK);
  expect_clean(store);
}

TEST(Offload, AFailedWriteUnpinsTheSourcesAndListsNothing) {
  for (const Alteration& how : {Alteration{.error = Error::FILE_WRITE_FAIL}, Alteration{.bytes = kBlock}}) {
    Store store(roomy_store());
    store.alter(disk_write(Component::offload), how);
    store.put(kNode0, items(0, 3));
    store.run_for(seconds(1));
    EXPECT_EQ(on_disk(store, 0, 3), 0);
    EXPECT_EQ(store.master_counters().offload_nacked, 3U);
    expect_clean(store);
  }
}

TEST(Offload, ARefusedBucketDoesNotSwitchOffloadOff) {  // RC-36
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.ssd_eviction = SsdEviction::none;
  setup.plan.store.holder.ssd_bytes = kBlock * 5;
  Store store(setup);
  store.put(kNode0, items(0, 4));
  store.run_for(milliseconds(200));
  store.put(kNode0, items(10, 1, kBlock * 2));  // beyond the quota
  store.run_for(milliseconds(200));
  EXPECT_EQ(on_disk(store, 10, 1), 0);
  store.put(kNode0, items(20, 1));
  store.run_for(milliseconds(200));
  EXPECT_EQ(on_disk(store, 20, 1), 1);
  EXPECT_EQ(on_disk(store, 0, 4), 4);
  expect_clean(store);
}

TEST(Offload, AFullSsdTurnsTasksDownAndUnpinsTheirSources) {
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.ssd_eviction = SsdEviction::none;
  setup.plan.store.holder.ssd_bytes = kBlock * 4;
  Store store(setup);
  store.put(kNode0, items(0, 4));
  store.run_for(milliseconds(200));
  store.put(kNode0, items(10, 2));
  store.run_for(milliseconds(200));
  EXPECT_EQ(on_disk(store, 10, 2), 0);
  EXPECT_EQ(store.remove(kNode0, key(10)).error, Error::OK);
  expect_clean(store);
}

TEST(Offload, ByDefaultAFullSsdMakesRoomOldestFirst) {  // RC-37
  EXPECT_EQ(HolderSettings{}.ssd_eviction, SsdEviction::fifo);
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.ssd_bytes = kBlock * 4;
  setup.plan.store.holder.bucket_keys = 1;
  Store store(setup);
  for (std::uint64_t k = 0; k < 6; ++k) {
    store.put(kNode0, items(k, 1));
    store.run_for(milliseconds(200));
  }
  EXPECT_EQ(on_disk(store, 0, 2), 0);
  EXPECT_EQ(on_disk(store, 2, 4), 4);
  EXPECT_EQ(store.counters().ssd_keys_evicted, 2U);
  expect_clean(store);
}

TEST(Offload, AnObjectIsReadableUntilTheMasterKnowsOfItsEviction) {  // RC-38
  StoreSetup setup = small_store(1);
  setup.plan.store.holder.ssd_bytes = kBlock * 2;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(request(Component::offload).of_keys(2), {.held = true});  // the notice, before the report
  store.put(kNode0, items(10, 2));
  ASSERT_TRUE(store.run_until([&] { return store.held() == 1; }));
  EXPECT_EQ(on_disk(store, 0, 2), 2);
  EXPECT_EQ(store.get(kNode0, items(0, 2)).keys[1].error, Error::OK);
  store.release_held();
  store.run_for(seconds(1));
  EXPECT_EQ(on_disk(store, 0, 2), 0);
  EXPECT_EQ(on_disk(store, 10, 2), 2);
  expect_clean(store);
}

TEST(Offload, ALostEvictionNoticeDeletesNothing) {  // RC-38
  StoreSetup setup = small_store(1);
  setup.plan.store.holder.ssd_bytes = kBlock * 2;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(request(Component::offload).of_keys(2), {.error = Error::RPC_TIMEOUT});
  store.put(kNode0, items(10, 2));
  store.run_for(seconds(1));
  EXPECT_EQ(store.get(kNode0, items(0, 2)).keys[0].error, Error::OK);
  EXPECT_EQ(store.counters().ssd_keys_evicted, 0U);
  expect_clean(store);
}

TEST(Offload, AKeyIsReadableFromTheMomentItIsListed) {  // RC-12
  Store store(small_store(1));
  store.alter(reply(Component::offload), {.delay = seconds(1)}, 1'000);  // the holder hears of the listing much later
  store.put(kNode0, items(0, 2));
  ASSERT_TRUE(store.run_until([&] { return store.view(key(0)).on_disk && !store.view(key(0)).in_memory; }));
  const OpResult get = store.get(kNode0, items(0, 2));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  expect_clean(store);
}

TEST(Offload, AReportThatGetsLostRollsTheIndexBack) {  // RC-12
  Store store(roomy_store());
  store.put(kNode0, items(0, 2));
  ASSERT_TRUE(store.run_until([&] { return store.count(disk_write(Component::offload)) == 1; }));
  store.alter(request(Component::offload), {.error = Error::RPC_TIMEOUT});
  store.run_for(seconds(1));
  EXPECT_EQ(store.counters().offload_rollbacks, 1U);
  EXPECT_EQ(on_disk(store, 0, 2), 0);
  expect_clean(store);
}

TEST(Offload, AReportWithoutAnAnswerIsWithdrawnFromTheMasterToo) {  // RC-12
  Store store(roomy_store());
  store.put(kNode0, items(0, 2));
  ASSERT_TRUE(store.run_until([&] { return store.count(disk_write(Component::offload)) == 1; }));
  store.alter(reply(Component::offload), {.error = Error::RPC_TIMEOUT});
  ASSERT_TRUE(store.run_until([&] { return store.counters().offload_rollbacks == 1; }));
  store.run_for(seconds(1));
  EXPECT_EQ(on_disk(store, 0, 2), 0) << "the master lists what the holder has deleted";
  expect_clean(store);
}

TEST(Offload, AnObjectRemovedWhileItIsWrittenIsNotListed) {
  Store store(roomy_store());
  store.put(kNode0, items(0, 3));
  store.alter(disk_write(Component::offload), {.held = true});
  ASSERT_TRUE(store.run_until([&] { return store.held() == 1; }));
  EXPECT_EQ(store.remove(kNode0, key(1)).error, Error::OK);
  store.release_held();
  store.run_for(seconds(1));
  EXPECT_EQ(on_disk(store, 0, 3), 2);
  EXPECT_EQ(store.probe(kNode0, keys(0, 3)).present, (std::vector<bool>{true, false, true}));
  expect_clean(store);
}

TEST(Offload, TheSourceReadGrantsNoLeaseUnlessTheOriginalIsAskedFor) {  // RC-47
  for (const bool legacy : {false, true}) {
    StoreSetup setup = roomy_store();
    setup.plan.store.legacy.offload_read_leases = legacy;
    Store store(setup);
    store.put(kNode0, items(0, 3));
    store.run_for(seconds(1));
    EXPECT_EQ(store.master_counters().leases_granted, legacy ? 3U : 0U);
    expect_clean(store);
  }
}

TEST(Offload, TheWatermarkOfTheSsdIsKeptByTrimming) {
  StoreSetup setup = roomy_store();
  setup.plan.store.holder.ssd_high_watermark_ratio = 0.9;
  setup.plan.store.holder.ssd_low_watermark_ratio = 0.5;
  setup.plan.store.holder.ssd_bytes = kBlock * 10;
  setup.plan.store.holder.bucket_keys = 1;
  Store store(setup);
  store.put(kNode0, items(0, 10));
  store.run_for(seconds(1));
  EXPECT_EQ(on_disk(store, 0, 10), 5);
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
