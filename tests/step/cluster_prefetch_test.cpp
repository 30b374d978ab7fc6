// The prefetcher: trigger, jobs, routes, pressure, cooldown.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

/// Names of the job's calls to the master, in the order of one local promotion.
constexpr int kQuery = 0, kRegister = 1;

std::int64_t in_memory(const Store& store, std::uint64_t first, std::uint64_t count) {
  std::int64_t n = 0;
  for (const ObjectKey& k : keys(first, count)) n += store.view(k).in_memory ? 1 : 0;
  return n;
}

// -- trigger ----------------------------------------------------------------------------------------------------

TEST(PrefetchTrigger, AProbeCausesNothingButItsOwnCallBeforeItIsAnswered) {  // I7
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.clear_log();
  const OpToken probe = store.start_probe(kNode0, keys(0, 4));
  store.run_until([&] { return store.ended(probe); });
  EXPECT_EQ(store.count(request(Component::probe)), 1);
  EXPECT_EQ(store.count({.kind = EffectKind::disk_read}), 0);
  EXPECT_EQ(store.count({.kind = EffectKind::transfer}), 0);
}

TEST(PrefetchTrigger, AJobBeginsWithAReadOnlyQuery) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.alter(request(Component::job).after(kRegister), {.held = true});
  store.probe(kNode0, keys(0, 4));
  const std::uint64_t leases = store.master_counters().leases_granted;
  store.run_for(milliseconds(10));
  EXPECT_EQ(store.held(), 1U);
  EXPECT_EQ(store.master_counters().leases_granted, leases);
  EXPECT_EQ(store.master().promotions_in_flight(), 0);
  store.release_held();
  expect_clean(store);
}

TEST(PrefetchTrigger, TheProbeTakesAsLongWithPrefetchAsWithout) {
  std::vector<Time> took;
  for (const char* preset : {"none", "rfc-4271"}) {
    StoreSetup setup = small_store();
    setup.plan.policy = *policy_preset(preset);
    Store store(setup);
    store.to_ssd(kNode0, items(0, 4));
    const Time began = store.now();
    store.probe(kNode0, keys(0, 4));
    took.push_back(Time{} + (store.ended_at() - began));
  }
  EXPECT_EQ(took[0], took[1]);
}

TEST(PrefetchTrigger, OnlyKeysThatTheProbeFoundAreTriggered) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 2));
  store.probe(kNode0, keys(0, 5));
  EXPECT_EQ(store.counters().keys_triggered, 2U);
  expect_clean(store);
}

TEST(PrefetchTrigger, ASecondProbeInsideTheWindowTriggersNothing) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.probe(kNode0, keys(0, 4));
  store.probe(kNode0, keys(0, 4));
  store.settle();
  EXPECT_EQ(store.counters().keys_triggered, 4U);
  EXPECT_EQ(store.counters().keys_deduplicated, 4U);
  EXPECT_EQ(store.counters().promotions_started, 4U);
  expect_clean(store);
}

TEST(PrefetchTrigger, AProbeWhoseAnswerIsLostTriggersNothing) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.alter(reply(Component::probe), {.error = Error::RPC_TIMEOUT});
  EXPECT_EQ(store.probe(kNode0, keys(0, 4)).error, Error::RPC_TIMEOUT);
  EXPECT_EQ(store.counters().triggers, 0U);
  expect_clean(store);
}

// -- chunks and classification --------------------------------------------------------------------------------

TEST(PrefetchJob, QueriesAreChunksOf128Keys) {
  Store store(small_store(1, mebibytes(64)));
  store.to_ssd(kNode0, items(0, 300, kibibytes(4)));
  store.clear_log();
  store.probe(kNode0, keys(0, 300));
  store.settle();
  std::vector<std::int32_t> chunks;
  for (const Store::Logged& l : store.log()) {
    if (request(Component::job).accepts(l.effect) && l.effect.requests > 1) chunks.push_back(l.effect.requests);
  }
  EXPECT_EQ(chunks, (std::vector<std::int32_t>{128, 128, 44}));
  EXPECT_EQ(store.counters().promotions_completed, 300U);
  expect_clean(store);
}

TEST(PrefetchJob, KeysThatAreInMemoryAreLeftAlone) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.probe(kNode0, keys(0, 4));
  store.settle();
  store.probe(kNode1, keys(0, 4));  // another client: its throttle does not know
  store.settle();
  EXPECT_EQ(store.counters().keys_already_resident, 4U);
  EXPECT_EQ(store.counters().promotions_started, 4U);
  expect_clean(store);
}

TEST(PrefetchJob, AKeyThatVanishedSinceTheProbeFailsAlone) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.alter(request(Component::job), {.held = true});
  store.probe(kNode0, keys(0, 4));
  store.run_until([&] { return store.held() == 1; });
  store.run_for(seconds(11));  // the probe's lease ends
  EXPECT_EQ(store.remove(kNode0, key(1)).error, Error::OK);
  store.release_held();
  store.settle();
  EXPECT_EQ(store.counters().keys_query_failed, 1U);
  EXPECT_EQ(store.counters().promotions_completed, 3U);
  expect_clean(store);
}

TEST(PrefetchJob, AnUnansweredQueryFailsItsChunkAndTheNextChunkGoesOn) {
  StoreSetup setup = small_store();
  setup.plan.store.client.prefetch_chunk_keys = 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  store.alter(request(Component::job).after(kQuery), {.error = Error::RPC_TIMEOUT});
  store.probe(kNode0, keys(0, 4));
  store.settle();
  EXPECT_EQ(store.counters().keys_query_failed, 2U);
  EXPECT_EQ(in_memory(store, 2, 2), 2);
  // The back-off of a failed key is the cooldown, not the whole window.
  store.run_for(milliseconds(5'100));
  store.probe(kNode0, keys(0, 2));
  store.settle();
  EXPECT_EQ(in_memory(store, 0, 2), 2);
  expect_clean(store);
}

// -- routes ---------------------------------------------------------------------------------------------------

TEST(PrefetchRoute, OwnKeysArePromotedWithoutAskingAnybodyElse) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 3));
  store.clear_log();
  store.probe(kNode0, keys(0, 3));
  store.settle();
  EXPECT_EQ(store.counters().delegated_keys, 0U);
  for (const Store::Logged& l : store.log()) {
    EXPECT_TRUE(!request(Component::job).accepts(l.effect) || l.effect.peer == kMasterNode);
  }
}

TEST(PrefetchRoute, EachRemoteHolderIsAskedOnceAndPromotesItsOwnKeys) {
  Store store(small_store(3));
  store.to_ssd(kNode1, items(0, 3));
  store.to_ssd(kNode2, items(10, 2));
  store.clear_log();
  std::vector<ObjectKey> all = keys(0, 3);
  for (const ObjectKey& k : keys(10, 2)) all.push_back(k);
  store.probe(kNode0, all);
  store.settle();
  std::vector<std::pair<NodeId, std::int32_t>> delegations;
  for (const Store::Logged& l : store.log()) {
    if (request(Component::job).accepts(l.effect) && l.effect.peer != kMasterNode)
      delegations.emplace_back(l.effect.peer, l.effect.requests);
  }
  EXPECT_EQ(delegations, (std::vector<std::pair<NodeId, std::int32_t>>{{kNode1, 3}, {kNode2, 2}}));
  EXPECT_EQ(store.counters().delegated_keys, 5U);
  EXPECT_EQ(store.counters().promotions_completed, 5U);
  EXPECT_EQ(store.count(disk_read(Component::job).at(kNode0)), 0);
  EXPECT_EQ(store.count(disk_read(Component::job).at(kNode1)), 3);
  EXPECT_EQ(store.count(disk_read(Component::job).at(kNode2)), 2);
  expect_clean(store);
}

TEST(PrefetchRoute, AHolderPromotesAKeyOnceHoweverManyNodesDelegateIt) {
  Store store(small_store(3));
  store.to_ssd(kNode2, items(0, 4));
  const OpToken a = store.start_probe(kNode0, keys(0, 4));
  const OpToken b = store.start_probe(kNode1, keys(0, 4));
  store.finish(a), store.finish(b);
  store.settle();
  EXPECT_EQ(store.counters().delegated_keys, 8U);
  EXPECT_EQ(store.counters().promotions_started, 4U);
  EXPECT_EQ(store.master_counters().prefetch_registered, 4U);
  expect_clean(store);
}

TEST(PrefetchRoute, ADelegationDeliveredTwiceStartsOneJob) {
  Store store(small_store());
  store.to_ssd(kNode1, items(0, 3));
  store.alter(request(Component::job).after(1), {.twice = true});
  store.probe(kNode0, keys(0, 3));
  store.settle();
  EXPECT_EQ(store.counters().promotions_started, 3U);
  expect_clean(store);
}

TEST(PrefetchRoute, APeerThatDoesNotKnowTheCallCostsNothingButTheWindow) {
  Store store(small_store());
  store.to_ssd(kNode1, items(0, 3));
  store.alter(request(Component::job).after(1), {.error = Error::RPC_FAIL});
  store.probe(kNode0, keys(0, 3));
  store.settle();
  EXPECT_EQ(store.counters().delegations_failed, 1U);
  EXPECT_EQ(store.counters().promotions_started, 0U);
  store.probe(kNode0, keys(0, 3));  // unknown outcome: blocked for the window
  store.settle();
  EXPECT_EQ(store.counters().keys_deduplicated, 3U);
  store.run_for(seconds(31));
  store.probe(kNode0, keys(0, 3));
  store.settle();
  EXPECT_EQ(store.counters().promotions_completed, 3U);
  expect_clean(store);
}

TEST(PrefetchRoute, ADelegationToADeadHolderIsNotServed) {
  Store store(small_store());
  store.to_ssd(kNode1, items(0, 3));
  store.alter(request(Component::job).after(1), {.held = true});
  store.probe(kNode0, keys(0, 3));
  store.run_until([&] { return store.held() == 1; });
  store.crash(kNode1);
  store.release_held();
  store.settle();
  EXPECT_EQ(store.counters().promotions_started, 0U);
  expect_clean(store);
}

TEST(PrefetchRoute, AHolderInCooldownTurnsDelegationsDown) {
  Store store(small_store());
  store.to_ssd(kNode1, items(0, 4));
  store.exhaust_dram();
  store.probe(kNode1, keys(0, 1));  // its allocation finds no room: node 1 cools down
  store.run_for(milliseconds(100));
  ASSERT_EQ(store.counters().cooldowns_entered, 1U);
  store.probe(kNode0, keys(1, 3));
  store.run_for(milliseconds(100));
  EXPECT_EQ(store.counters().delegations_in_cooldown, 1U);
  EXPECT_EQ(store.counters().promotions_started, 1U);
  store.release_held();
  expect_clean(store);
}

// -- guards ---------------------------------------------------------------------------------------------------

TEST(PrefetchGuard, AKeyThatIsNotInTheHoldersOwnIndexIsNeverRegistered) {  // RC-13
  StoreSetup setup = small_store();
  setup.plan.store.holder.ssd_bytes = kBlock * 2;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  // The notice of an eviction is on its way when the bucket is gone already: hold the job between query and look-up.
  store.alter(reply(Component::job), {.held = true});
  store.probe(kNode0, keys(0, 2));
  store.run_until([&] { return store.held() == 1; });
  store.to_ssd(kNode0, items(10, 2));
  store.release_held();
  store.settle();
  EXPECT_EQ(store.counters().keys_not_in_index, 2U);
  EXPECT_EQ(store.counters().promotions_started, 0U);
  EXPECT_EQ(store.master_counters().prefetch_registered, 0U);
  expect_clean(store);
}

TEST(PrefetchGuard, AKeyThatLeftTheIndexAfterItsRegistrationFailsCleanly) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.ssd_bytes = kBlock * 2;
  setup.plan.store.holder.ssd_high_watermark_ratio = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 2));
  store.alter(reply(Component::job).after(2), {.held = true});  // of the allocation
  store.probe(kNode0, keys(0, 2));
  store.run_until([&] { return store.held() == 1; });
  store.to_ssd(kNode0, items(10, 2));
  store.release_held();
  store.settle();
  EXPECT_EQ(store.counters().promotions_failed, 1U);
  EXPECT_EQ(store.counters().keys_not_in_index, 1U);
  expect_clean(store);
}

TEST(PrefetchGuard, AnotherTaskOfTheKeyIsSkippedQuietly) {  // RC-07, RC-19
  StoreSetup setup = small_store();
  setup.plan.store.client.ssd_get_wait = seconds(5);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(request(Component::job).after(kRegister), {.twice = true});  // the second delivery meets the first's task
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_EQ(store.master_counters().prefetch_already, 1U);
  EXPECT_EQ(store.counters().promotions_completed, 1U);
  EXPECT_EQ(store.counters().promotions_failed, 0U);
  expect_clean(store);
}

TEST(PrefetchGuard, PrefetchAndOnHitNeverHoldTwoTasksOfAKey) {  // I1, RC-07
  StoreSetup setup = small_store(1);
  setup.plan.store.master.promotion_on_hit = true;
  setup.plan.store.master.promotion_admission_threshold = 1;
  setup.plan.store.master.eviction_high_watermark_ratio = 0.5;  // on-hit refuses at or above the watermark
  setup.plan.store.holder.heartbeat_period = milliseconds(500);
  setup.plan.store.master.kv_lease_ttl = milliseconds(1);
  Store store(setup);
  store.put(kNode0, items(0, 40));  // 2.5 of 4 MiB
  ASSERT_TRUE(store.run_until([&] { return !store.view(key(0)).in_memory; }, seconds(60)));
  store.get(kNode0, items(0, 1));  // queues an on-hit task for the next round
  ASSERT_TRUE(store.master().has_promotion_task(key(0)));
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(20));
  EXPECT_EQ(store.master_counters().prefetch_already, 1U);
  EXPECT_EQ(store.counters().promotions_skipped, 1U);
  EXPECT_EQ(store.counters().cooldowns_entered, 0U);
  store.settle();
  EXPECT_EQ(store.master_counters().promotion_committed, 1U);  // by the on-hit round
  EXPECT_EQ(store.counters().promotions_failed, 0U);
  expect_clean(store);
}

// -- pool and queue -------------------------------------------------------------------------------------------

TEST(PrefetchPool, NoMoreJobsRunThanThereAreWorkers) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.prefetch_workers = 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 5));
  store.alter(request(Component::job), {.held = true}, 100);
  for (std::uint64_t k = 0; k < 5; ++k) store.probe(kNode0, keys(k, 1));
  store.run_for(seconds(1));
  EXPECT_EQ(store.held(), 2U);
  store.drop_rules();
  store.release_held();
  store.settle();
  EXPECT_EQ(store.counters().promotions_completed, 5U);
  expect_clean(store);
}

TEST(PrefetchPool, ATriggerBeyondTheQueueIsRefusedAndItsKeysMayBeTriggeredAgain) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.prefetch_workers = 1;
  setup.plan.store.holder.prefetch_queue_limit = 1;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 3));
  store.alter(request(Component::job), {.held = true}, 100);
  for (std::uint64_t k = 0; k < 3; ++k) store.probe(kNode0, keys(k, 1));
  EXPECT_EQ(store.counters().triggers_refused_queue_full, 1U);
  store.drop_rules();
  store.release_held();
  store.settle();
  EXPECT_EQ(in_memory(store, 0, 3), 2);
  store.probe(kNode0, keys(2, 1));  // at once: the refusal left no mark
  store.settle();
  EXPECT_EQ(in_memory(store, 0, 3), 3);
  expect_clean(store);
}

TEST(PrefetchPool, AFullQueueAtTheHolderRefusesADelegation) {
  StoreSetup setup = small_store();
  setup.plan.store.holder.prefetch_workers = 1;
  setup.plan.store.holder.prefetch_queue_limit = 1;
  Store store(setup);
  store.to_ssd(kNode1, items(0, 3));
  store.alter(request(Component::job).at(kNode1), {.held = true}, 100);
  store.probe(kNode1, keys(0, 1));
  store.probe(kNode1, keys(1, 1));
  store.probe(kNode0, keys(2, 1));
  store.run_for(milliseconds(10));
  EXPECT_EQ(store.counters().triggers_refused_queue_full, 1U);
  store.drop_rules();
  store.release_held();
  expect_clean(store);
}

// -- pressure -------------------------------------------------------------------------------------------------

/// Four keys on SSD, DRAM full, one probe: the first allocation is refused.
Store under_pressure(bool legacy) {
  StoreSetup setup = small_store();
  setup.plan.store.legacy.pressure_leaves_triggered = legacy;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  store.exhaust_dram();
  store.probe(kNode0, keys(0, 4));
  store.run_for(milliseconds(100));
  return store;
}

TEST(PrefetchPressure, TheFirstRefusedAllocationStopsTheList) {  // RC-14
  Store store = under_pressure(false);
  EXPECT_EQ(store.master_counters().prefetch_registered, 1U);
  EXPECT_EQ(store.master_counters().promotion_no_handle, 1U);
  EXPECT_EQ(store.counters().cooldowns_entered, 1U);
  EXPECT_EQ(store.counters().keys_released, 3U);
  EXPECT_EQ(store.master().promotions_in_flight(), 0);
  store.release_held();
  expect_clean(store);
}

TEST(PrefetchPressure, KeysBehindTheRefusedOneMayBeTriggeredWhenTheCooldownEnds) {  // RC-14
  Store store = under_pressure(false);
  store.release_held();
  store.run_for(milliseconds(5'100));
  store.probe(kNode0, keys(0, 4));
  store.settle();
  EXPECT_EQ(in_memory(store, 0, 4), 4);
  expect_clean(store);
}

TEST(PrefetchPressure, TheOriginalLeavesThemBlockedForTheWholeWindow) {
  Store store = under_pressure(true);
  store.release_held();
  store.run_for(milliseconds(5'100));
  store.probe(kNode0, keys(0, 4));
  store.settle();
  EXPECT_EQ(in_memory(store, 0, 4), 1);
  expect_clean(store);
}

TEST(PrefetchPressure, PressureInOneChunkReleasesTheChunksBehindIt) {
  StoreSetup setup = small_store();
  setup.plan.store.client.prefetch_chunk_keys = 2;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 6));
  store.exhaust_dram();
  store.clear_log();
  store.probe(kNode0, keys(0, 6));
  store.run_for(milliseconds(100));
  EXPECT_EQ(store.counters().keys_released, 5U);
  store.release_held();
  expect_clean(store);
}

TEST(PrefetchPressure, ACooldownSuppressesTriggersAndMarksNoKeys) {
  Store store = under_pressure(false);
  store.release_held();
  store.probe(kNode0, keys(1, 3));
  EXPECT_EQ(store.counters().cooldown_yields, 1U);
  EXPECT_EQ(store.counters().keys_triggered, 4U);
  EXPECT_EQ(store.counters().keys_deduplicated, 0U);
  expect_clean(store);
}

TEST(PrefetchPressure, WithoutTheCooldownGateTriggersGoOn) {
  StoreSetup setup = small_store();
  setup.plan.policy.gate_cooldown = false;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  store.exhaust_dram();
  store.probe(kNode0, keys(0, 4));
  store.run_for(milliseconds(100));
  EXPECT_EQ(store.counters().cooldowns_entered, 0U);
  store.release_held();
  store.run_for(seconds(1));
  store.probe(kNode0, keys(1, 3));
  store.settle();
  EXPECT_EQ(in_memory(store, 1, 3), 3);
  expect_clean(store);
}

// -- the demand side ------------------------------------------------------------------------------------------

StoreSetup with_kick() {
  StoreSetup setup = small_store();
  setup.plan.store.client.ssd_get_wait = milliseconds(500);
  return setup;
}

TEST(PrefetchKick, AGetOfKeysNeverProbedPromotesThemOnce) {
  Store store(with_kick());
  store.to_ssd(kNode0, items(0, 4));
  store.get(kNode0, items(0, 4));
  store.settle();
  EXPECT_EQ(store.counters().kicks, 1U);
  EXPECT_EQ(store.counters().keys_triggered, 4U);
  EXPECT_EQ(in_memory(store, 0, 4), 4);
  expect_clean(store);
}

TEST(PrefetchKick, ACooldownDoesNotHoldItBack) {
  Store store(with_kick());
  store.to_ssd(kNode0, items(0, 4));
  store.exhaust_dram();
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(100));
  ASSERT_EQ(store.counters().cooldowns_entered, 1U);
  store.release_held();
  store.run_for(seconds(1));
  store.get(kNode0, items(1, 3));
  store.settle();
  EXPECT_EQ(store.counters().kicks_in_cooldown, 1U);
  EXPECT_EQ(in_memory(store, 1, 3), 3);
  expect_clean(store);
}

TEST(PrefetchKick, TheMastersCapStillRefuses) {
  StoreSetup setup = with_kick();
  setup.plan.store.master.promotion_queue_limit = 0;
  Store store(setup);
  store.to_ssd(kNode0, items(0, 4));
  store.get(kNode0, items(0, 4));
  store.settle();
  EXPECT_EQ(store.master_counters().prefetch_cap, 4U);
  EXPECT_EQ(store.counters().promotions_failed, 4U);
  EXPECT_EQ(in_memory(store, 0, 4), 0);
  expect_clean(store);
}

TEST(PrefetchKick, KeysThatAProbeTriggeredAreNotTriggeredAgain) {
  Store store(with_kick());
  store.to_ssd(kNode0, items(0, 4));
  store.alter(request(Component::job), {.held = true});
  store.probe(kNode0, keys(0, 4));
  store.get(kNode0, items(0, 4));
  EXPECT_EQ(store.counters().keys_triggered, 4U);
  EXPECT_EQ(store.counters().keys_deduplicated, 4U);
  store.release_held();
  expect_clean(store);
}

TEST(PrefetchKick, WithoutAWaitThereIsNoKick) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 4));
  store.get(kNode0, items(0, 4));
  store.settle();
  EXPECT_EQ(store.counters().kicks, 0U);
  EXPECT_EQ(store.counters().keys_triggered, 0U);
  expect_clean(store);
}

// -- time -----------------------------------------------------------------------------------------------------

TEST(PrefetchTime, APromotionLongerThanItsWindowKeepsItsKey) {  // RC-01
  StoreSetup setup = small_store();
  setup.plan.store.client.ssd_prefetch_dedup_ttl = seconds(1);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(3)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(seconds(2));
  store.probe(kNode0, keys(0, 1));
  EXPECT_EQ(store.counters().keys_deduplicated, 1U);
  store.settle();
  EXPECT_EQ(store.counters().promotions_started, 1U);
  EXPECT_EQ(store.counters().promotions_completed, 1U);
  expect_clean(store);
}

TEST(PrefetchTime, AWaiterOfALongPromotionStillSucceeds) {  // RC-01
  StoreSetup setup = small_store();
  setup.plan.store.client.ssd_prefetch_dedup_ttl = seconds(1);
  setup.plan.store.client.ssd_get_wait = seconds(10);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.delay = seconds(3)});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(10));
  const OpToken get = store.start_get(kNode0, items(0, 1));
  store.run_for(seconds(2));
  store.probe(kNode0, keys(0, 1));
  const OpResult r = store.finish(get);
  EXPECT_EQ(r.keys[0].error, Error::OK);
  EXPECT_EQ(r.keys[0].tier, Tier::memory);
  expect_clean(store);
}

TEST(PrefetchTime, AfterTheWindowAnEvictedKeyIsPromotedAgain) {
  StoreSetup setup = small_store();
  setup.plan.store.master.kv_lease_ttl = seconds(1);
  Store store(setup);
  store.to_ssd(kNode0, items(0, 1));
  store.probe(kNode0, keys(0, 1));
  store.settle();
  ASSERT_TRUE(store.run_until([&] { return !store.view(key(0)).in_memory; }));
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_EQ(store.counters().promotions_completed, 1U) << "a key completed inside the window was granted again";
  store.run_for(seconds(31));
  store.probe(kNode0, keys(0, 1));
  store.settle();
  EXPECT_EQ(store.counters().promotions_completed, 2U);
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
