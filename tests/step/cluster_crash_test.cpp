// Death of a reader, holder, writer or master in every state: the other side is left with nothing, and comes on.
#include <ostream>

#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

StoreSetup pinging_store(std::int64_t nodes = 2) {
  StoreSetup setup = small_store(nodes);
  setup.plan.store.client.ping_period = seconds(1);
  return setup;
}

/// A moment of an operation: when its n-th effect of a kind is under way.
struct Moment {
  const char* name;
  Match effect;
};
std::ostream& operator<<(std::ostream& out, const Moment& m) { return out << m.name; }
const auto kNames = [](const auto& at) { return std::string(at.param.name); };

/// Runs until that effect of the operation that was started last is under way. The log was cleared before it.
bool reach(Store& store, const Match& match) {
  return store.run_until([&] { return store.count(match.after(0)) > match.skip; }, seconds(60));
}

// -- promotion ------------------------------------------------------------------------------------------------

const std::vector<Moment> kPromotion = {
    {"querying", request(Component::job)},          {"registering", request(Component::job).after(1)},
    {"registered", reply(Component::job).after(1)}, {"allocating", request(Component::job).after(2)},
    {"allocated", reply(Component::job).after(2)},  {"reading", disk_read(Component::job)},
    {"writing", transfer(Component::job)},          {"committing", request(Component::job).after(3)},
    {"committed", reply(Component::job).after(3)},
};

class PromoterDies : public testing::TestWithParam<Moment> {};

TEST_P(PromoterDies, ItsTaskEndsWithItAndTheKeyIsPromotedAfterItsRestart) {  // RC-23
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 1));
  store.clear_log();
  store.start_probe(kNode0, keys(0, 1));
  ASSERT_TRUE(reach(store, GetParam().effect));
  store.crash(kNode0);
  store.run_for(seconds(15));  // beyond the client's expiry
  EXPECT_EQ(store.master().promotions_in_flight(), 0);
  EXPECT_FALSE(store.master().has_promotion_task(key(0)));
  store.restart(kNode0);
  store.run_for(seconds(5));
  EXPECT_TRUE(store.view(key(0)).on_disk);
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_TRUE(store.view(key(0)).in_memory);
  expect_clean(store);
}

TEST_P(PromoterDies, ARestartBeforeItsExpiryLeavesNothingOfTheOldProcess) {
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 1));
  store.clear_log();
  store.start_probe(kNode0, keys(0, 1));
  ASSERT_TRUE(reach(store, GetParam().effect));
  store.crash(kNode0);
  store.run_for(milliseconds(100));
  store.restart(kNode0);
  store.run_for(seconds(15));
  EXPECT_EQ(store.master().promotions_in_flight(), 0);
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_TRUE(store.view(key(0)).in_memory);
  expect_clean(store);
}

INSTANTIATE_TEST_SUITE_P(While, PromoterDies, testing::ValuesIn(kPromotion), kNames);

// -- reads ------------------------------------------------------------------------------------------------------

const std::vector<Moment> kRead = {
    {"querying", request(Component::get)},        {"query_answered", reply(Component::get)},
    {"asking", request(Component::staged_read)},  {"reading", disk_read(Component::staged_read)},
    {"answering", reply(Component::staged_read)}, {"pulling", transfer(Component::staged_read)},
};

class ReaderDies : public testing::TestWithParam<Moment> {};

TEST_P(ReaderDies, TheHolderServesTheNextOneWithAllItsRoom) {
  StoreSetup setup = pinging_store(3);
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock);
  setup.plan.store.holder.file_read_workers = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.clear_log();
  const OpToken get = store.start_get(kNode1, items(0, 1));
  ASSERT_TRUE(reach(store, GetParam().effect));
  store.crash(kNode1);
  store.settle();
  EXPECT_EQ(store.finish(get).error, Error::RPC_FAIL);
  const OpResult next = store.get(kNode2, items(0, 1));
  EXPECT_EQ(next.keys[0].error, Error::OK);
  EXPECT_EQ(store.counters().staging_waits, 0U);
  expect_clean(store);
}

INSTANTIATE_TEST_SUITE_P(While, ReaderDies, testing::ValuesIn(kRead), kNames);

class HolderDies : public testing::TestWithParam<Moment> {};

TEST_P(HolderDies, TheReadersKeysFailOneByOneAndAreReadableAfterItsRestart) {  // RC-58
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 2));
  store.clear_log();
  const OpToken get = store.start_get(kNode1, items(0, 2));
  ASSERT_TRUE(reach(store, GetParam().effect));
  store.crash(kNode0);
  const OpResult failed = store.finish(get);
  EXPECT_EQ(failed.error, Error::OK);
  for (const KeyOutcome& k : failed.keys) EXPECT_EQ(k.error, Error::RPC_TIMEOUT);
  store.run_for(seconds(15));
  store.restart(kNode0);
  store.run_for(seconds(5));
  const OpResult again = store.get(kNode1, items(0, 2));
  for (const KeyOutcome& k : again.keys) EXPECT_EQ(k.error, Error::OK);
  expect_clean(store);
}

INSTANTIATE_TEST_SUITE_P(While, HolderDies, testing::ValuesIn(kRead), kNames);

TEST(HolderRestart, AViewFromBeforeItIsAStaleEndpoint) {  // RC-58
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(request(Component::staged_read), {.delay = seconds(5)});
  const OpToken get = store.start_get(kNode1, items(0, 1));
  store.run_for(milliseconds(10));
  store.crash(kNode0);
  store.restart(kNode0);
  EXPECT_EQ(store.finish(get).keys[0].error, Error::RPC_TIMEOUT);
  EXPECT_EQ(store.get(kNode1, items(0, 1)).keys[0].error, Error::OK) << "the new endpoint is listed";
  expect_clean(store);
}

TEST(HolderRestart, EverythingOnItsSsdIsListedAgainInPages) {
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 20));
  store.crash(kNode0);
  store.run_for(seconds(20));
  EXPECT_FALSE(store.view(key(0)).on_disk && store.view(key(0)).holder_epoch > 1);
  store.restart(kNode0);
  store.run_for(seconds(5));
  for (const ObjectKey& k : keys(0, 20)) EXPECT_TRUE(store.view(k).on_disk);
  EXPECT_EQ(store.get(kNode1, items(0, 20)).keys[19].error, Error::OK);
  expect_clean(store);
}

TEST(HolderDeath, ReadsThatWaitForItsWorkersEnd) {
  StoreSetup setup = pinging_store();
  setup.plan.store.holder.file_read_workers = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(disk_read(Component::staged_read), {.delay = seconds(2)});
  std::vector<OpToken> gets;
  for (std::uint64_t k = 0; k < 3; ++k) gets.push_back(store.start_get(kNode1, items(k, 1)));
  store.run_for(milliseconds(100));
  store.crash(kNode0);
  for (const OpToken g : gets) EXPECT_EQ(store.finish(g).keys[0].error, Error::RPC_TIMEOUT);
  expect_clean(store);
}

TEST(HolderDeath, AGetThatWaitsForAPromotionOfTheSameProcessEnds) {
  StoreSetup setup = pinging_store();
  setup.plan.store.client.ssd_get_wait = seconds(2);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(5)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpToken get = store.start_get(kNode0, items(0, 1));
  store.run_for(milliseconds(10));
  store.crash(kNode0);
  EXPECT_EQ(store.finish(get).error, Error::RPC_FAIL);
  store.run_for(seconds(20));
  expect_clean(store);
}

TEST(HolderDeath, QueuedPrefetchJobsDieWithIt) {
  StoreSetup setup = pinging_store();
  setup.plan.store.holder.prefetch_workers = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(request(Component::job), {.delay = seconds(1)});
  for (std::uint64_t k = 0; k < 3; ++k) store.probe(kNode0, keys(k, 1));
  store.crash(kNode0);
  store.settle();
  EXPECT_EQ(store.counters().promotions_started, 0U);
  expect_clean(store);
}

// -- writes -----------------------------------------------------------------------------------------------------

const std::vector<Moment> kWrite = {
    {"starting", request(Component::put)},
    {"started", reply(Component::put)},
    {"writing", transfer(Component::put)},
    {"ending", request(Component::put).after(1)},
};

class WriterDies : public testing::TestWithParam<Moment> {};

TEST_P(WriterDies, ItsPutNeverBecomesVisibleAndItsRoomComesBack) {
  StoreSetup setup = pinging_store();
  setup.plan.store.master.allocation_strategy = AllocationStrategy::random;
  setup.plan.store.master.put_start_discard_timeout = seconds(2);
  setup.plan.store.master.put_start_release_timeout = seconds(30);
  Store store(setup);
  store.clear_log();
  const OpToken put = store.start_put(kNode0, items(0, 8));
  ASSERT_TRUE(reach(store, GetParam().effect));
  store.crash(kNode0);
  EXPECT_EQ(store.finish(put).error, Error::RPC_FAIL);
  store.run_for(seconds(15));
  EXPECT_EQ(store.probe(kNode1, keys(0, 8)).present, std::vector<bool>(8, false));
  EXPECT_EQ(store.put(kNode1, items(0, 8)).keys[0].error, Error::OK) << "the name is free again";
  store.run_for(seconds(60));
  EXPECT_EQ(store.master().dram(store.now()).allocated, Bytes{0}) << "all is on SSD, and nothing is parked";
  expect_clean(store);
}

INSTANTIATE_TEST_SUITE_P(While, WriterDies, testing::ValuesIn(kWrite), kNames);

TEST(WriterDeath, AnObjectInTheDeadNodesMemoryIsGone) {
  StoreSetup setup = pinging_store();
  setup.plan.store.master.eviction_high_watermark_ratio = 1;
  setup.plan.store.master.enable_offload = false;
  Store store(setup);
  store.put(kNode0, items(0, 2));
  store.crash(kNode0);
  store.run_for(seconds(15));
  EXPECT_EQ(store.get(kNode1, items(0, 2)).keys[0].error, Error::OBJECT_NOT_FOUND);
  expect_clean(store);
}

TEST(OffloaderDeath, InTheMiddleOfAWriteNothingIsListed) {
  Store store(pinging_store());
  store.clear_log();
  store.put(kNode0, items(0, 2));
  ASSERT_TRUE(reach(store, disk_write(Component::offload)));
  store.crash(kNode0);
  store.run_for(seconds(15));
  EXPECT_NE(store.view(key(0)).error, Error::OK);
  store.restart(kNode0);
  store.run_for(seconds(5));
  EXPECT_NE(store.view(key(0)).error, Error::OK);
  expect_clean(store);
}

// -- the master ---------------------------------------------------------------------------------------------------

class MasterRestartsWhile : public testing::TestWithParam<Moment> {};

TEST_P(MasterRestartsWhile, InTheMiddleOfAPromotionLeavesNothingAndTheKeyIsPromotedLater) {
  for (const bool snapshot : {false, true}) {
    Store store(pinging_store());
    store.to_ssd(kNode0, items(0, 1));
    store.clear_log();
    store.start_probe(kNode0, keys(0, 1));
    ASSERT_TRUE(reach(store, GetParam().effect));
    store.restart_master(snapshot);
    store.run_for(seconds(15));
    EXPECT_EQ(store.master().promotions_in_flight(), 0);
    ASSERT_TRUE(store.view(key(0)).on_disk) << "the holder has told the new master";
    store.run_for(seconds(30));
    store.probe(kNode0, keys(0, 1));
    store.settle();
    EXPECT_TRUE(store.view(key(0)).in_memory);
    expect_clean(store);
  }
}

INSTANTIATE_TEST_SUITE_P(At, MasterRestartsWhile, testing::ValuesIn(kPromotion), kNames);

TEST(MasterRestart, WithoutASnapshotWhatIsOnSsdIsReportedAgain) {
  Store store(pinging_store());
  store.to_ssd(kNode0, items(0, 3));
  store.to_ssd(kNode1, items(10, 3));
  store.restart_master(false);
  EXPECT_NE(store.view(key(0)).error, Error::OK);
  store.run_for(seconds(5));
  EXPECT_EQ(store.get(kNode1, items(0, 3)).keys[2].error, Error::OK);
  EXPECT_EQ(store.get(kNode0, items(10, 3)).keys[2].error, Error::OK);
  expect_clean(store);
}

TEST(MasterRestart, FromASnapshotObjectsInMemoryHaveALeaseOfGrace) {  // RC-64
  StoreSetup setup = pinging_store();
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.probe(kNode0, keys(0, 1));
  store.settle();
  store.restart_master(true);
  EXPECT_TRUE(store.view(key(0)).in_memory);
  EXPECT_GE(store.master().lease_timeout(key(0)), store.now() + seconds(9));
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
