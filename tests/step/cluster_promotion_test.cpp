// The promotion chain inside the store: whatever step fails, nothing is left over and the next key is promoted.
#include <ostream>

#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

/// One way to fail: which effect of the job, and how.
struct Failure {
  const char* name;
  Match effect;
  Alteration how;
  bool key_is_promoted = false;  ///< the bytes arrive all the same
};
std::ostream& operator<<(std::ostream& out, const Failure& f) { return out << f.name; }

const Match kCall = request(Component::job);  // 0 query, 1 register, 2 allocate, 3 commit
const Match kAnswer = reply(Component::job);

const std::vector<Failure> kFailures = {
    {"registration_lost", kCall.after(1), {.error = Error::RPC_TIMEOUT}},
    {"registration_unanswered", kAnswer.after(1), {.error = Error::RPC_TIMEOUT}},
    {"allocation_lost", kCall.after(2), {.error = Error::RPC_TIMEOUT}},
    {"allocation_unanswered", kAnswer.after(2), {.error = Error::RPC_TIMEOUT}},
    {"read_fails", disk_read(Component::job), {.error = Error::FILE_READ_FAIL}},
    {"read_is_short", disk_read(Component::job), {.bytes = Bytes{kBlock.value - 1}}},
    {"read_is_empty", disk_read(Component::job), {.bytes = Bytes{0}}},
    {"write_fails", transfer(Component::job), {.error = Error::TRANSFER_FAIL}},
    {"write_is_short", transfer(Component::job), {.bytes = Bytes{kBlock.value - 1}}},
    {"commit_lost", kCall.after(3), {.error = Error::RPC_TIMEOUT}},
    {"commit_unanswered", kAnswer.after(3), {.error = Error::RPC_TIMEOUT}, true},
};

class ChainFailure : public testing::TestWithParam<Failure> {};

TEST_P(ChainFailure, LeavesNothingAtTheMasterAndTheNextKeyIsPromoted) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 2));
  const Bytes before = store.master().dram(store.now()).allocated;
  store.alter(GetParam().effect, GetParam().how);
  const OpToken probe = store.start_probe(kNode0, keys(0, 2));
  store.finish(probe);
  const Time lease = store.master().lease_timeout(key(0));
  store.settle();
  EXPECT_FALSE(store.master().has_promotion_task(key(0)));
  EXPECT_EQ(store.view(key(0)).in_memory, GetParam().key_is_promoted);
  EXPECT_TRUE(store.view(key(0)).on_disk);
  EXPECT_TRUE(store.view(key(1)).in_memory);
  EXPECT_EQ(store.master().lease_timeout(key(0)) > lease, GetParam().key_is_promoted) << "I3";
  const Bytes kept = kBlock * (GetParam().key_is_promoted ? 2 : 1);
  EXPECT_EQ(store.master().dram(store.now()).allocated, before + kept) << "a staged replica was left";
  EXPECT_EQ(store.counters().promotions_failed, 1U);
  EXPECT_EQ(store.counters().promotions_completed, 1U);
  expect_clean(store);
}

TEST_P(ChainFailure, FreesItsStagingRoom) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock);  // room for one object
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(GetParam().effect, GetParam().how);
  store.probe(kNode0, keys(0, 1));
  store.settle();
  // A read of the same holder finds the arena free.
  const OpResult get = store.get(kNode0, items(1, 1));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(store.counters().staging_waits, 0U);
  expect_clean(store);
}

TEST_P(ChainFailure, IsTriedAgainAfterItsBackOff) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(GetParam().effect, GetParam().how);
  store.probe(kNode0, keys(0, 1));
  store.settle();
  store.run_for(milliseconds(5'100));
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_TRUE(store.view(key(0)).in_memory);
  expect_clean(store);
}

INSTANTIATE_TEST_SUITE_P(EachStep, ChainFailure, testing::ValuesIn(kFailures),
                         [](const auto& at) { return std::string(at.param.name); });

TEST(PromotionChain, ACommittedPrefetchHoldsALeaseFromItsCommitOn) {  // RC-30
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(4)});
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_GE(store.master().lease_timeout(key(0)), store.now() + seconds(9));
  expect_clean(store);
}

TEST(PromotionChain, AFullStagingArenaFailsThePromotionAndCostsNoReader) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.delay = seconds(1)});
  const OpToken get = store.start_get(kNode0, items(0, 1));
  store.run_for(milliseconds(10));
  store.probe(kNode0, keys(1, 1));
  store.settle();
  EXPECT_EQ(store.counters().promotions_failed, 1U);
  EXPECT_EQ(store.finish(get).keys[0].error, Error::OK);
  expect_clean(store);
}

TEST(PromotionChain, AReaderThatWaitsForStagingGoesOnWhenAPromotionGivesItsRoomBack) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::job), {.delay = milliseconds(100)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpResult get = store.get(kNode0, items(1, 1));
  EXPECT_EQ(get.keys[0].error, Error::OK);
  EXPECT_EQ(store.counters().staging_waits, 1U);
  expect_clean(store);
}

TEST(PromotionChain, AnObjectRemovedUnderItsTaskIsNotBroughtBack) {
  StoreSetup setup = small_store();
  setup.plan.store.master.kv_lease_ttl = milliseconds(10);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(kCall.after(2), {.held = true});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(100));
  EXPECT_EQ(store.remove(kNode0, key(0)).error, Error::OK);
  store.release_held();
  store.settle();
  EXPECT_EQ(store.view(key(0)).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(store.counters().promotions_failed, 1U);
  expect_clean(store);
}

TEST(PromotionChain, ADuplicatedCompletionChangesNothing) {
  Store once(small_store());
  Store twice(small_store());
  twice.alter({}, {.completes = true}, 1'000'000);
  for (Store* store : {&once, &twice}) {
    store->to_ssd(kNode0, items(0, 3));
    store->probe(kNode0, keys(0, 3));
    store->settle();
  }
  EXPECT_EQ(once.counters().promotions_completed, twice.counters().promotions_completed);
  EXPECT_EQ(once.cluster().hash(), twice.cluster().hash());
  EXPECT_GT(twice.counters().stale_completions, 0U);
  expect_clean(twice);
}

}  // namespace
}  // namespace kvlift::step
