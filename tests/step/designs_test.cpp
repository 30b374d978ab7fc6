// What sets the designs apart in the store: triggers, routes and waits that only some of them have.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

StoreSetup store_of(std::string_view preset) {
  StoreSetup setup = small_store();
  setup.plan.policy = *policy_preset(preset);
  return setup;
}

/// Three keys on the SSD of node 0 whose promotions hang for long, then a get of them.
OpResult get_behind_slow_promotions(Store& store, int reads = 3) {
  store.to_ssd(kNode0, items(0, 3));
  store.alter(disk_read(Component::job), {.delay = milliseconds(200)}, reads);
  store.probe(kNode0, keys(0, 3));
  store.run_for(milliseconds(5));
  return store.get(kNode0, items(0, 3));
}

TEST(DesignWait, EveryKeyHasABudgetOfItsOwnOnlyIn2646) {
  for (const std::string_view preset : {"concept-2213", "impl-2646", "rfc-4271", "rfc-4271-best-effort"}) {
    StoreSetup setup = store_of(preset);
    setup.plan.store.client.ssd_get_wait = milliseconds(10);
    Store store(setup);
    const OpResult get = get_behind_slow_promotions(store);
    const bool per_key = preset == "impl-2646";
    const bool batch = preset == "rfc-4271";
    EXPECT_EQ(get.wait_promotion, milliseconds(per_key ? 30 : batch ? 10 : 0)) << preset;
    EXPECT_EQ(store.counters().get_waits_late, per_key ? 3U : batch ? 1U : 0U) << preset;
    expect_clean(store);
  }
}

TEST(DesignWait, CompleteWaitsAsLongAsItTakes) {
  Store store(store_of("rfc-4271-wait-complete"));
  const OpResult get = get_behind_slow_promotions(store, 1);
  EXPECT_GT(get.wait_promotion, milliseconds(190));
  EXPECT_EQ(get.keys[0].tier, Tier::memory);
  EXPECT_EQ(get.keys[1].tier, Tier::disk) << "it was not live yet";
  expect_clean(store);
}

TEST(DesignWait, CompleteEndsWithTheProcessThatWaits) {
  Store store(store_of("rfc-4271-wait-complete"));
  store.to_ssd(kNode0, items(0, 1));
  store.alter(disk_read(Component::job), {.held = true});
  store.probe(kNode0, keys(0, 1));
  store.run_for(milliseconds(5));
  const OpToken get = store.start_get(kNode0, items(0, 1));
  store.run_for(milliseconds(5));
  store.crash(kNode0);
  EXPECT_EQ(store.finish(get).error, Error::RPC_FAIL);
  store.release_held();
  expect_clean(store);
}

TEST(DesignWait, ByLengthGrowsWithThePromptUpToItsCap) {
  for (const auto& [tokens, waited] : {std::pair{0, 10}, std::pair{2'000, 60}, std::pair{1'000'000, 100}}) {
    StoreSetup setup = store_of("rfc-4271-wait-length");
    setup.plan.policy.get_wait_cap = milliseconds(100);
    Store store(setup);
    store.to_ssd(kNode0, items(0, 1));
    store.alter(disk_read(Component::job), {.delay = seconds(1)});
    store.probe(kNode0, keys(0, 1));
    store.run_for(milliseconds(5));
    EXPECT_EQ(store.get(kNode0, items(0, 1), Tokens{tokens}).wait_promotion, milliseconds(waited)) << tokens;
    expect_clean(store);
  }
}

TEST(DesignTrigger, KeysOfOtherTenantsAreLeftAloneOnlyBy2646) {
  for (const auto& [preset, triggered] : {std::pair{"impl-2646", 0U}, std::pair{"rfc-4271", 1U}}) {
    Store store(store_of(preset));
    const ObjectKey foreign{.key = {.high = 0, .low = 1}, .tenant = TenantId{1}};
    store.to_ssd(kNode0, {{foreign, kBlock}});
    store.probe(kNode0, {foreign});
    store.settle();
    EXPECT_EQ(store.counters().keys_triggered, triggered) << preset;
    expect_clean(store);
  }
}

TEST(DesignTrigger, ARouterBringsKeysWithoutAProbe) {
  for (const std::string_view preset : {"router-3417", "rfc-4271-router"}) {
    StoreSetup setup = store_of(preset);
    setup.plan.policy.gate_watermark = false;  // small_store() is always above it
    Store store(setup);
    store.to_ssd(kNode0, items(0, 2));
    store.probe(kNode0, keys(0, 2));
    store.settle();
    EXPECT_EQ(store.counters().promotions_started, 0U) << preset;
    const OpResult routed = store.route(0, keys(0, 3));
    EXPECT_EQ(routed.present, (std::vector<bool>{true, true, false})) << preset;
    store.run_for(milliseconds(200));
    store.settle();
    EXPECT_EQ(store.counters().promotions_completed, 2U) << preset;
    expect_clean(store);
  }
}

TEST(DesignTrigger, TwoRoutersThatWantAKeyBringItOnce) {
  for (const std::string_view preset : {"router-3417", "rfc-4271-router"}) {
    StoreSetup setup = store_of(preset);
    setup.plan.policy.gate_watermark = false;  // small_store() is always above it
    Store store(setup);
    store.to_ssd(kNode0, items(0, 2));
    const OpToken first = store.start_route(0, keys(0, 2));
    const OpToken second = store.start_route(1, keys(0, 2));
    store.finish(first);
    store.finish(second);
    store.run_for(milliseconds(200));
    store.settle();
    EXPECT_EQ(store.counters().promotions_started, 2U) << preset;
    EXPECT_EQ(store.master_counters().promotion_committed, 2U) << preset;
    EXPECT_EQ(store.master_counters().promotion_doubled, 0U) << preset;
    expect_clean(store);
  }
}

TEST(DesignTrigger, TheOracleReadsFromMemoryWhatOnlyTheSsdHas) {
  Store store(store_of("oracle"));
  store.to_ssd(kNode0, items(0, 2));
  store.clear_log();
  const OpResult get = store.get(kNode1, items(0, 2));
  for (const KeyOutcome& k : get.keys) EXPECT_EQ(k.tier, Tier::memory);
  EXPECT_EQ(store.count({.kind = EffectKind::disk_read}), 0);
  expect_clean(store);
}

TEST(DesignRegistration, AChunkIsRegisteredBeforeItsFirstReadOnlyBy2646) {
  for (const auto& [preset, tasks] : {std::pair{"impl-2646", 3}, std::pair{"rfc-4271", 1}}) {
    Store store(store_of(preset));
    store.to_ssd(kNode0, items(0, 3));
    store.alter(disk_read(Component::job), {.held = true});
    store.probe(kNode0, keys(0, 3));
    store.run_for(milliseconds(5));
    ASSERT_EQ(store.held(), 1U) << preset;
    EXPECT_EQ(store.master().promotions_in_flight(), tasks) << preset;
    store.release_held();
    expect_clean(store);
  }
}

}  // namespace
}  // namespace kvlift::step
