// One read of the SSD for everybody who wants its bytes; reads in parts; promotions that yield to reads.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

constexpr auto kUnderWay = Policy::StagedReuse::under_way;
constexpr auto kUntilNeeded = Policy::StagedReuse::until_needed;

StoreSetup store_that_reuses(Policy::StagedReuse reuse, std::int64_t nodes = 3) {
  StoreSetup setup = small_store(nodes);
  setup.plan.policy = *policy_preset("none");
  setup.plan.policy.staged_reuse = reuse;
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock) * 8;
  return setup;
}

void expect_from_disk(const OpResult& get) {
  EXPECT_EQ(get.error, Error::OK);
  for (const KeyOutcome& k : get.keys) {
    EXPECT_EQ(k.error, Error::OK);
    EXPECT_EQ(k.tier, Tier::disk);
  }
}

/// The same keys for every node at the same time, as ranks that share keys ask for them.
std::vector<OpToken> get_by_all_ranks(Store& store, const std::vector<KeyItem>& list, std::uint32_t ranks = 3) {
  std::vector<OpToken> gets;
  for (std::uint32_t n = 0; n < ranks; ++n) gets.push_back(store.start_get(static_cast<NodeId>(n), list));
  return gets;
}

TEST(StagedReuse, RanksThatShareKeysReadTheSsdOnce) {
  for (const auto& [reuse, reads] : {std::pair{Policy::StagedReuse::none, 3}, {kUnderWay, 1}, {kUntilNeeded, 1}}) {
    Store store(store_that_reuses(reuse));
    store.to_ssd(kNode0, items(0, 4));
    store.clear_log();
    for (const OpToken get : get_by_all_ranks(store, items(0, 4))) expect_from_disk(store.finish(get));
    EXPECT_EQ(store.count(disk_read(Component::staged_read)), reads);
    EXPECT_EQ(store.counters().bytes_read_ssd, static_cast<std::uint64_t>(reads * 4 * kBlock.value));
    EXPECT_EQ(store.counters().reads_shared, static_cast<std::uint64_t>((3 - reads) * 4));
    expect_clean(store);
  }
}

TEST(StagedReuse, OnlyWhatIsNotStagedIsRead) {
  Store store(store_that_reuses(kUnderWay));
  store.to_ssd(kNode0, items(0, 6));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
  const OpToken first = store.start_get(kNode1, items(0, 4));
  store.run_for(milliseconds(10));
  store.clear_log();
  expect_from_disk(store.get(kNode2, items(2, 4)));
  expect_from_disk(store.finish(first));
  EXPECT_EQ(store.count(disk_read(Component::staged_read).of_keys(2)), 1) << "keys 4 and 5";
  EXPECT_EQ(store.count(disk_read(Component::staged_read)), 1);
  expect_clean(store);
}

TEST(StagedReuse, AReadThatFailsFailsForAllWhoAskedMeanwhileAndIsTriedAgainByTheNext) {
  Store store(store_that_reuses(kUntilNeeded));
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::staged_read), {.error = Error::FILE_READ_FAIL});
  for (const OpToken get : get_by_all_ranks(store, items(0, 1)))
    EXPECT_EQ(store.finish(get).keys[0].error, Error::FILE_READ_FAIL);
  expect_from_disk(store.get(kNode1, items(0, 1)));
  expect_clean(store);
}

TEST(StagedReuse, AReadThatIsCutShortServesTheKeysThatAreWhole) {
  Store store(store_that_reuses(kUnderWay));
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.bytes = Bytes{2 * kBlock.value - 1}});
  for (const OpToken token : get_by_all_ranks(store, items(0, 2))) {
    const OpResult get = store.finish(token);
    EXPECT_EQ(get.keys[0].error, Error::OK);
    EXPECT_EQ(get.keys[1].error, Error::FILE_READ_FAIL);
  }
  expect_clean(store);
}

TEST(StagedReuse, AReaderThatDiesLeavesItsReadToTheOthers) {
  Store store(store_that_reuses(kUnderWay));
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
  const OpToken reader = store.start_get(kNode1, items(0, 2));
  store.run_for(milliseconds(5));
  const OpToken borrower = store.start_get(kNode2, items(0, 2));
  store.run_for(milliseconds(5));
  store.crash(kNode1);
  expect_from_disk(store.finish(borrower));
  EXPECT_EQ(store.finish(reader).error, Error::RPC_FAIL);
  EXPECT_EQ(store.counters().bytes_read_ssd, static_cast<std::uint64_t>(2 * kBlock.value));
  expect_clean(store);
}

TEST(StagedReuse, ABorrowerThatDiesLeavesTheReadToItsReader) {
  Store store(store_that_reuses(kUnderWay));
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
  const OpToken reader = store.start_get(kNode1, items(0, 2));
  store.run_for(milliseconds(5));
  const OpToken borrower = store.start_get(kNode2, items(0, 2));
  store.run_for(milliseconds(5));
  store.crash(kNode2);
  expect_from_disk(store.finish(reader));
  EXPECT_EQ(store.finish(borrower).error, Error::RPC_FAIL);
  expect_clean(store);
}

TEST(StagedReuse, AHolderThatDiesFailsReaderAndBorrowers) {
  Store store(store_that_reuses(kUntilNeeded));
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
  const OpToken reader = store.start_get(kNode1, items(0, 2));
  const OpToken borrower = store.start_get(kNode2, items(0, 2));
  store.run_for(milliseconds(5));
  store.crash(kNode0);
  for (const OpToken get : {reader, borrower}) {
    for (const KeyOutcome& k : store.finish(get).keys) EXPECT_EQ(k.error, Error::RPC_TIMEOUT);
  }
  store.restart(kNode0);
  store.run_for(seconds(1));
  expect_from_disk(store.get(kNode1, items(0, 2)));  // a fresh arena: nothing of the old one is found
  expect_clean(store);
}

TEST(StagedReuse, WhatWasStagedIsReadAgainOnlyWhereItIsNotKept) {
  for (const auto& [reuse, reads] : {std::pair{kUnderWay, 2}, std::pair{kUntilNeeded, 1}}) {
    Store store(store_that_reuses(reuse));
    store.to_ssd(kNode0, items(0, 2));
    store.clear_log();
    expect_from_disk(store.get(kNode1, items(0, 2)));
    store.run_for(seconds(10));
    expect_from_disk(store.get(kNode1, items(0, 2)));
    EXPECT_EQ(store.count(disk_read(Component::staged_read)), reads);
    expect_clean(store);
  }
}

TEST(StagedReuse, OthersGetTheRoomOfWhatIsKept) {
  Store store(store_that_reuses(kUntilNeeded));  // room for eight objects
  store.to_ssd(kNode0, items(0, 9));
  for (std::uint64_t k = 0; k < 9; ++k) expect_from_disk(store.get(kNode1, items(k, 1)));
  EXPECT_EQ(store.counters().staging_waits, 0U);
  store.clear_log();
  expect_from_disk(store.get(kNode1, items(8, 1)));
  EXPECT_EQ(store.count(disk_read(Component::staged_read)), 0) << "the youngest is there";
  expect_from_disk(store.get(kNode1, items(0, 1)));
  EXPECT_EQ(store.count(disk_read(Component::staged_read)), 1) << "the one idle longest made room";
  expect_clean(store);
}

TEST(StagedReuse, WhatIsBorrowedNeverStandsInTheWayOfWhatIsRead) {
  StoreSetup setup = store_that_reuses(kUntilNeeded);
  setup.plan.store.holder.staging_bytes = StagingArena::footprint(kBlock) * 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  expect_from_disk(store.get(kNode1, items(0, 1)));
  expect_from_disk(store.get(kNode1, items(0, 4)));  // one is staged, and only one more fits beside it
  expect_from_disk(store.get(kNode1, items(1, 3)));
  expect_clean(store);
}

StoreSetup prefetching_store(Policy::StagedReuse reuse) {
  StoreSetup setup = store_that_reuses(reuse);
  setup.plan.policy = *policy_preset("rfc-4271");
  setup.plan.policy.staged_reuse = reuse;
  setup.plan.policy.get_wait = Policy::GetWait::off;
  setup.plan.policy.get_kick = false;
  return setup;
}

TEST(StagedReuse, AReadTakesWhatAPromotionIsReading) {
  Store store(prefetching_store(kUnderWay));
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = milliseconds(50)});
  store.clear_log();
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(5));
  expect_from_disk(store.get(kNode1, items(0, 1)));
  store.settle();
  EXPECT_EQ(store.count({.kind = EffectKind::disk_read}), 1);
  EXPECT_EQ(store.counters().promotions_completed, 1U);
  expect_clean(store);
}

TEST(StagedReuse, APromotionTakesWhatAReadHasStaged) {
  Store store(prefetching_store(kUntilNeeded));
  store.to_ssd(kNode0, items(0, 2));
  expect_from_disk(store.get(kNode1, items(0, 2)));
  store.clear_log();
  store.probe(kNode0, keys(0, 2));
  store.settle();
  EXPECT_EQ(store.counters().promotions_completed, 2U);
  EXPECT_EQ(store.count({.kind = EffectKind::disk_read}), 0);
  EXPECT_EQ(store.counters().bytes_read_for_promotion, 0U);
  expect_clean(store);
}

TEST(StagedReuse, APromotionFailsWithTheReadThatItBorrows) {
  Store store(prefetching_store(kUnderWay));
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::staged_read), {.error = Error::FILE_READ_FAIL, .delay = milliseconds(50)});
  const OpToken get = store.start_get(kNode1, items(0, 1));
  store.run_for(milliseconds(5));
  store.probe(kNode0, keys(0, 1));
  EXPECT_EQ(store.finish(get).keys[0].error, Error::FILE_READ_FAIL);
  store.settle();
  EXPECT_EQ(store.counters().promotions_failed, 1U);
  EXPECT_FALSE(store.master().has_promotion_task(key(0)));
  expect_clean(store);
}

// -- reads in parts --------------------------------------------------------------------------------------------------

TEST(ReadInParts, ThePartThatFollowsIsReadWhileTheFirstTravels) {
  StoreSetup setup = store_that_reuses(Policy::StagedReuse::none);
  setup.plan.policy.read_part_keys = 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 5));
  store.alter(transfer(Component::staged_read), {.delay = milliseconds(50)});
  store.clear_log();
  const OpToken get = store.start_get(kNode1, items(0, 5));
  store.run_for(milliseconds(10));
  EXPECT_EQ(store.count(disk_read(Component::staged_read).of_keys(2)), 2);
  EXPECT_EQ(store.count(disk_read(Component::staged_read).of_keys(1)), 1);
  EXPECT_FALSE(store.ended(get)) << "the first part still travels";
  expect_from_disk(store.finish(get));
  expect_clean(store);
}

TEST(ReadInParts, TheDeviceReadsOnePartOfAGetAtATime) {
  StoreSetup setup = store_that_reuses(Policy::StagedReuse::none);
  setup.plan.policy.read_part_keys = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
  store.clear_log();
  const OpToken get = store.start_get(kNode1, items(0, 3));
  store.run_for(milliseconds(10));
  EXPECT_EQ(store.count(disk_read(Component::staged_read)), 1);
  expect_from_disk(store.finish(get));
  expect_clean(store);
}

TEST(ReadInParts, AHolderThatDoesNotAnswerIsAskedOnce) {
  StoreSetup setup = store_that_reuses(Policy::StagedReuse::none);
  setup.plan.policy.read_part_keys = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(request(Component::staged_read), {.error = Error::RPC_TIMEOUT});
  store.clear_log();
  const OpResult get = store.get(kNode1, items(0, 3));
  for (const KeyOutcome& k : get.keys) EXPECT_EQ(k.error, Error::RPC_TIMEOUT);
  EXPECT_EQ(store.count(request(Component::staged_read)), 1);
  expect_clean(store);
}

// -- promotions that yield -------------------------------------------------------------------------------------------

TEST(YieldToReads, APromotionWaitsUntilNobodyReadsTheSsd) {
  for (const bool yields : {false, true}) {
    StoreSetup setup = prefetching_store(Policy::StagedReuse::none);
    setup.plan.policy.yield_to_reads = yields;
    Store store(setup);
    store.to_ssd(kNode0, items(0, 4));
    store.alter(disk_read(Component::staged_read), {.delay = milliseconds(50)});
    const OpToken get = store.start_get(kNode1, items(0, 2));
    store.run_for(milliseconds(5));
    store.clear_log();
    store.probe(kNode0, keys(2, 2));
    store.run_for(milliseconds(10));
    EXPECT_EQ(store.count(disk_read(Component::job)), yields ? 0 : 2);
    EXPECT_EQ(store.master().promotions_in_flight(), 0) << "nothing is held at the master meanwhile";
    store.finish(get);
    store.settle();
    EXPECT_EQ(store.counters().promotions_completed, 2U);
    expect_clean(store);
  }
}

TEST(YieldToReads, AKeyThatTheReadHasStagedNeedsNoDevice) {
  StoreSetup setup = prefetching_store(kUnderWay);
  setup.plan.policy.yield_to_reads = true;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(transfer(Component::staged_read), {.delay = milliseconds(50)});
  const OpToken get = store.start_get(kNode1, items(0, 1));
  store.run_for(milliseconds(5));
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  EXPECT_FALSE(store.ended(get));
  EXPECT_EQ(store.counters().promotions_completed, 1U);
  expect_from_disk(store.finish(get));
  expect_clean(store);
}

TEST(YieldToReads, AJobThatYieldsEndsWithItsProcess) {
  StoreSetup setup = prefetching_store(Policy::StagedReuse::none);
  setup.plan.policy.yield_to_reads = true;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(disk_read(Component::staged_read), {.held = true});
  store.start_get(kNode1, items(0, 1));
  store.run_for(milliseconds(5));
  store.probe(kNode0, keys(1, 1));
  store.run_for(milliseconds(5));
  store.crash(kNode0);
  store.release_held();
  store.restart(kNode0);
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
