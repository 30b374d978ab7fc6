// Batch get: choice of the replica, waits, leases, staging.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

StoreSetup waiting_store(Duration budget = milliseconds(500)) {
  StoreSetup setup = small_store();
  setup.plan.store.client.ssd_get_wait = budget;
  return setup;
}

std::vector<Error> errors(const OpResult& get) {
  std::vector<Error> list;
  for (const KeyOutcome& k : get.keys) list.push_back(k.error);
  return list;
}

/// Keys 0.. of node 0, promoted and under lease.
void to_memory(Store& store, std::uint64_t first, std::uint64_t count) {
  store.to_ssd(kNode0, items(first, count));
  store.probe(kNode0, keys(first, count));
  store.settle();
}

// -- choice of the replica --------------------------------------------------------------------------------------

TEST(GetChoice, MemoryComesBeforeTheSsd) {
  Store store(small_store());
  to_memory(store, 0, 3);
  store.clear_log();
  const OpResult get = store.get(kNode1, items(0, 3));
  for (const KeyOutcome& k : get.keys) EXPECT_EQ(k.tier, Tier::memory);
  EXPECT_EQ(store.count({.kind = EffectKind::disk_read}), 0);
  expect_clean(store);
}

TEST(GetChoice, AKeyThatNobodyHasIsMissedAlone) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 2));
  std::vector<KeyItem> asked = items(0, 1);
  asked.push_back(items(77, 1)[0]);
  asked.push_back(items(1, 1)[0]);
  const OpResult get = store.get(kNode0, asked);
  EXPECT_EQ(errors(get), (std::vector{Error::OK, Error::OBJECT_NOT_FOUND, Error::OK}));
  EXPECT_EQ(store.counters().get_keys_missed, 1U);
  expect_clean(store);
}

TEST(GetChoice, ABatchThatNamesAKeyTwiceDeliversItTwice) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 1));
  std::vector<KeyItem> asked = items(0, 1);
  asked.push_back(asked[0]);
  EXPECT_EQ(errors(store.get(kNode0, asked)), (std::vector{Error::OK, Error::OK}));
  to_memory(store, 10, 1);
  asked = items(10, 1);
  asked.push_back(asked[0]);
  EXPECT_EQ(errors(store.get(kNode0, asked)), (std::vector{Error::OK, Error::OK}));
  expect_clean(store);
}

TEST(GetChoice, AnEmptyBatchEnds) {
  Store store(small_store());
  EXPECT_EQ(store.get(kNode0, {}).error, Error::OK);
  expect_clean(store);
}

TEST(GetChoice, TheTimesOfAGetAddUpToItsElapsedTime) {
  Store store(waiting_store());
  to_memory(store, 0, 2);
  store.to_ssd(kNode1, items(10, 2));
  std::vector<KeyItem> asked = items(0, 2);
  for (const KeyItem& i : items(10, 2)) asked.push_back(i);
  const Time began = store.now();
  const OpResult get = store.get(kNode0, asked);
  EXPECT_EQ(get.wait_promotion + get.load_dram + get.load_ssd, store.ended_at() - began);
  EXPECT_GT(get.load_ssd, Duration{0});
  expect_clean(store);
}

// -- waits ----------------------------------------------------------------------------------------------------

TEST(GetWait, IsOffByDefault) {
  EXPECT_EQ(ClientSettings{}.ssd_get_wait, Duration{0});
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::job), {.delay = seconds(1)});
  store.probe(kNode0, keys(0, 2));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 2));
  EXPECT_EQ(get.wait_promotion, Duration{0});
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  EXPECT_EQ(store.counters().get_waits, 0U);
  expect_clean(store);
}

TEST(GetWait, APolicyWithoutWaitNeverWaits) {
  StoreSetup setup = waiting_store();
  setup.plan.policy.get_wait = Policy::GetWait::off;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(1)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  EXPECT_EQ(store.get(kNode0, items(0, 1)).wait_promotion, Duration{0});
  expect_clean(store);
}

TEST(GetWait, ALivePromotionIsAwaitedAndReadFromMemory) {
  Store store(waiting_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(100)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.keys[0].tier, Tier::memory);
  EXPECT_GE(get.wait_promotion, milliseconds(80));
  EXPECT_LE(get.wait_promotion, milliseconds(110));
  EXPECT_EQ(store.counters().get_keys_replanned, 1U);
  expect_clean(store);
}

TEST(GetWait, AKeyWhosePromotionHasNotStartedGoesToTheSsdAtOnce) {
  Store store(waiting_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(request(Component::job), {.held = true});
  store.probe(kNode0, keys(0, 1));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.wait_promotion, Duration{0});
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  store.release_held();
  expect_clean(store);
}

TEST(GetWait, AKeyThatAnotherHolderBringsGoesToTheSsdAtOnce) {
  Store store(waiting_store());
  store.to_ssd(kNode1, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(100)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.wait_promotion, Duration{0});
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  expect_clean(store);
}

TEST(GetWait, OneDeadlineHoldsForTheWholeBatch) {
  Store store(waiting_store(milliseconds(50)));
  store.to_ssd(kNode0, items(0, 8));
  for (std::uint64_t k = 0; k < 4; ++k) {  // a job each: four promotions stay in flight
    store.alter(disk_read(Component::job), {.delay = seconds(5)});
    store.probe(kNode0, keys(k, 1));
  }
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 4));
  EXPECT_EQ(get.wait_promotion, milliseconds(50));
  EXPECT_EQ(store.counters().get_waits_late, 1U);
  for (const KeyOutcome& k : get.keys) {
    EXPECT_EQ(k.error, Error::OK);
    EXPECT_EQ(k.tier, Tier::disk);
  }
  expect_clean(store);
}

TEST(GetWait, AKeyThatWasPromotedInTimeIsReadFromMemoryThoughTheBatchWasLate) {
  Store store(waiting_store(milliseconds(50)));
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::job), {.delay = seconds(5)});
  store.probe(kNode0, keys(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(30)});
  store.probe(kNode0, keys(1, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 2));
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  EXPECT_EQ(get.keys[1].tier, Tier::memory);
  expect_clean(store);
}

TEST(GetWait, AFailedPromotionEndsTheWaitAtOnce) {
  Store store(waiting_store(seconds(10)));
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.error = Error::FILE_READ_FAIL, .delay = milliseconds(100)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(get.keys[0].tier, Tier::disk);
  EXPECT_LT(get.wait_promotion, milliseconds(110));
  expect_clean(store);
}

TEST(GetWait, TwoGetsMayWaitForTheSamePromotion) {
  Store store(waiting_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(100)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpToken a = store.start_get(kNode0, items(0, 1));
  const OpToken b = store.start_get(kNode0, items(0, 1));
  EXPECT_EQ(store.finish(a).keys[0].tier, Tier::memory);
  EXPECT_EQ(store.finish(b).keys[0].tier, Tier::memory);
  expect_clean(store);
}

TEST(GetWait, AfterTheWaitTheLeaseOfTheSecondQueryCounts) {  // RC-15, RC-71
  StoreSetup setup = waiting_store(seconds(5));
  setup.plan.store.master.kv_lease_ttl = seconds(1);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(3)});  // beyond the lease of the first query
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(get.keys[0].tier, Tier::memory);
  EXPECT_EQ(store.counters().lease_expired, 0U);
  expect_clean(store);
}

TEST(GetWait, AnUnansweredSecondQueryFallsBackToTheSsd) {
  Store store(waiting_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(100)});
  store.alter(reply(Component::get).after(1), {.error = Error::RPC_TIMEOUT});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(0, 1));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(get.keys[0].tier, Tier::disk) << "an answer that never came was used";
  expect_clean(store);
}

// -- leases ---------------------------------------------------------------------------------------------------

TEST(GetLease, ATransferThatOutlivesItsLeaseFailsWithLeaseExpired) {  // RC-29, RC-50
  StoreSetup setup = small_store();
  setup.plan.store.master.kv_lease_ttl = seconds(1);
  Store store(setup);
  to_memory(store, 0, 2);
  store.alter(transfer(Component::get), {.delay = seconds(2)});
  EXPECT_EQ(errors(store.get(kNode0, items(0, 2))), (std::vector{Error::LEASE_EXPIRED, Error::LEASE_EXPIRED}));
  EXPECT_EQ(store.counters().lease_expired, 2U);
  expect_clean(store);
}

TEST(GetLease, TheLeaseCountsFromTheSendingOfTheQuery) {
  StoreSetup setup = small_store();
  setup.plan.store.master.kv_lease_ttl = seconds(2);
  Store store(setup);
  to_memory(store, 0, 1);
  store.alter(reply(Component::get), {.delay = milliseconds(1'500)});
  store.alter(transfer(Component::get), {.delay = milliseconds(600)});
  EXPECT_EQ(errors(store.get(kNode0, items(0, 1))), (std::vector{Error::LEASE_EXPIRED}));
  expect_clean(store);
}

TEST(GetLease, ReadsOfTheSsdNeedNone) {
  StoreSetup setup = small_store();
  setup.plan.store.master.kv_lease_ttl = milliseconds(1);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.delay = seconds(1)});
  EXPECT_EQ(errors(store.get(kNode0, items(0, 2))), (std::vector{Error::OK, Error::OK}));
  expect_clean(store);
}

TEST(GetLease, AProbeOrAReadOnlyQueryOfTheSameKeyGivesAGetNoLease) {
  Store store(small_store());
  to_memory(store, 0, 1);
  EXPECT_EQ(store.view(key(0)).lease, Duration{0});
}

// -- failures of single keys ------------------------------------------------------------------------------------

/// Four keys of one holder; its read of the SSD stops inside the third.
std::vector<Error> short_endpoint(bool as_one) {
  StoreSetup setup = small_store();
  setup.plan.store.legacy.endpoint_fails_as_one = as_one;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  store.alter(disk_read(Component::staged_read), {.bytes = kBlock * 2 + Bytes{5}});
  const OpResult get = store.get(kNode1, items(0, 4));
  expect_clean(store);
  return errors(get);
}

TEST(GetFailure, AShortReadFailsOnlyTheKeysBehindTheCut) {  // RC-18
  EXPECT_EQ(short_endpoint(false), (std::vector{Error::OK, Error::OK, Error::FILE_READ_FAIL, Error::FILE_READ_FAIL}));
}

TEST(GetFailure, TheOriginalFailsEveryKeyOfTheEndpoint) {
  EXPECT_EQ(short_endpoint(true), std::vector(4, Error::FILE_READ_FAIL));
}

TEST(GetFailure, AFailedEndpointLeavesTheOthersAndMemoryAlone) {
  Store store(small_store(3));
  to_memory(store, 0, 1);
  store.to_ssd(kNode1, items(10, 1));
  store.to_ssd(kNode2, items(20, 1));
  store.alter(disk_read(Component::staged_read).at(kNode1), {.error = Error::FILE_READ_FAIL});
  const OpResult get = store.get(kNode0, {items(0, 1)[0], items(10, 1)[0], items(20, 1)[0]});
  EXPECT_EQ(errors(get), (std::vector{Error::OK, Error::FILE_READ_FAIL, Error::OK}));
  expect_clean(store);
}

TEST(GetFailure, AKeyThatLeftTheHoldersIndexFailsAlone) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.ssd_bytes = kBlock * 3;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  setup.plan.store.holder.bucket_keys = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(request(Component::staged_read), {.held = true});
  const OpToken get = store.start_get(kNode1, items(0, 3));
  store.run_until([&] { return store.held() == 1; });
  store.to_ssd(kNode0, items(10, 1));  // key 0, the oldest, goes
  store.release_held();
  EXPECT_EQ(errors(store.finish(get)), (std::vector{Error::INVALID_KEY, Error::OK, Error::OK}));
  expect_clean(store);
}

TEST(GetFailure, AFailedTransferFailsTheKeysOfItsSegmentOnly) {
  StoreSetup setup = small_store();
  setup.plan.store.master.eviction_high_watermark_ratio = 1;
  Store store(setup);
  store.put(kNode0, items(0, 1));
  store.put(kNode1, items(10, 1));
  store.alter(transfer(Component::get).at(kNode1), {.bytes = Bytes{1}});
  const OpResult get = store.get(kNode0, {items(0, 1)[0], items(10, 1)[0]});
  EXPECT_EQ(errors(get), (std::vector{Error::OK, Error::TRANSFER_FAIL}));
  expect_clean(store);
}

TEST(GetFailure, AnUnansweredQueryFailsTheGetAsAWhole) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 2));
  store.alter(request(Component::get), {.error = Error::RPC_TIMEOUT});
  EXPECT_EQ(store.get(kNode0, items(0, 2)).error, Error::RPC_TIMEOUT);
  expect_clean(store);
}

// -- staging ----------------------------------------------------------------------------------------------------

TEST(GetStaging, ABatchLargerThanTheArenaIsReadInWindows) {  // RC-52
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock) * 3;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 8));
  store.clear_log();
  EXPECT_EQ(errors(store.get(kNode1, items(0, 8))), std::vector(8, Error::OK));
  std::vector<std::int32_t> windows;
  for (const Store::Logged& l : store.log()) {
    if (disk_read(Component::staged_read).accepts(l.effect)) windows.push_back(l.effect.requests);
  }
  EXPECT_EQ(windows, (std::vector<std::int32_t>{3, 3, 2}));
  expect_clean(store);
}

TEST(GetStaging, AKeyLargerThanTheArenaFailsAlone) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock) * 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.to_ssd(kNode0, items(10, 1, kBlock * 4));
  const OpResult get = store.get(kNode1, {items(0, 1)[0], items(10, 1, kBlock * 4)[0], items(1, 1)[0]});
  EXPECT_EQ(errors(get), (std::vector{Error::OK, Error::INVALID_PARAMS, Error::OK}));
  EXPECT_EQ(store.counters().staging_overflows, 1U);
  expect_clean(store);
}

TEST(GetStaging, ReadsWaitForRoomInTheOrderOfTheirArrival) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  const OpToken a = store.start_get(kNode1, items(0, 1));
  const OpToken b = store.start_get(kNode1, items(1, 1));
  const OpToken c = store.start_get(kNode1, items(2, 1));
  store.finish(a);
  const Time a_end = store.ended_at();
  store.finish(b);
  const Time b_end = store.ended_at();
  store.finish(c);
  EXPECT_LT(a_end, b_end);
  EXPECT_LT(b_end, store.ended_at());
  EXPECT_GT(store.counters().staging_waits, 0U);
  expect_clean(store);
}

TEST(GetStaging, NoMoreReadsRunThanTheHolderHasWorkers) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.file_read_workers = 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 5));
  store.alter(disk_read(Component::staged_read), {.held = true}, 2);
  std::vector<OpToken> gets;
  for (std::uint64_t k = 0; k < 5; ++k) gets.push_back(store.start_get(kNode1, items(k, 1)));
  store.run_for(seconds(1));
  EXPECT_EQ(store.count(disk_read(Component::staged_read)), 2);
  store.release_held();
  for (const OpToken g : gets) EXPECT_EQ(store.finish(g).keys[0].error, Error::OK);
  expect_clean(store);
}

/// The error of a read whose way from the start of its staging to the last byte takes exactly `total`.
Error late_read(Duration total, bool legacy) {
  StoreSetup setup = small_store();
  setup.plan.store.legacy.discard_late_staged_reads = legacy;
  Store probe(setup);
  probe.to_ssd(kNode0, items(0, 1));
  Store measure = probe;
  measure.clear_log();
  measure.get(kNode1, items(0, 1));
  Time staged, pulled;
  for (const Store::Logged& l : measure.log()) {
    if (disk_read(Component::staged_read).accepts(l.effect)) staged = l.at;
  }
  pulled = measure.ended_at();
  Store store = probe;
  store.alter(disk_read(Component::staged_read), {.delay = total - (pulled - staged)});
  const OpResult get = store.get(kNode1, items(0, 1));
  expect_clean(store);
  return get.keys[0].error;
}

TEST(GetStaging, ALateReadIsDeliveredAllTheSame) {  // RC-59
  EXPECT_EQ(late_read(milliseconds(5'100), false), Error::OK);
}

TEST(GetStaging, TheOriginalDiscardsAReadOfExactlyFiveSeconds) {
  EXPECT_EQ(late_read(seconds(5), true), Error::OBJECT_HAS_LEASE);
  EXPECT_EQ(late_read(seconds(5) - nanoseconds(1), true), Error::OK);
}

// -- endpoints ------------------------------------------------------------------------------------------------

Duration two_endpoints(bool serial) {
  StoreSetup setup = small_store(3);
  setup.plan.store.legacy.serial_endpoints = serial;
  Store store(setup);
  store.to_ssd(kNode1, items(0, 2));
  store.to_ssd(kNode2, items(10, 2));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(100)}, 2);
  std::vector<KeyItem> asked = items(0, 2);
  for (const KeyItem& i : items(10, 2)) asked.push_back(i);
  const Time began = store.now();
  store.get(kNode0, asked);
  expect_clean(store);
  return store.ended_at() - began;
}

TEST(GetEndpoints, AreReadAtTheSameTime) { EXPECT_LT(two_endpoints(false), milliseconds(110)); }

TEST(GetEndpoints, InTheOriginalOneAfterAnother) { EXPECT_GT(two_endpoints(true), milliseconds(200)); }

TEST(GetEndpoints, InTheOriginalMemoryComesFirst) {
  StoreSetup setup = small_store();
  setup.plan.store.legacy.serial_endpoints = true;
  Store store(setup);
  to_memory(store, 0, 1);
  store.to_ssd(kNode1, items(10, 1));
  store.alter(transfer(Component::get), {.delay = milliseconds(100)});
  store.clear_log();
  const Time began = store.now();
  store.get(kNode0, {items(0, 1)[0], items(10, 1)[0]});
  for (const Store::Logged& l : store.log()) {
    EXPECT_TRUE(!request(Component::staged_read).accepts(l.effect) || l.at - began >= milliseconds(100));
  }
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
