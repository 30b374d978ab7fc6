// The RFC's integration test: fill, eviction to SSD, probe with prefetch, get; and its negative controls.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

struct Round {
  OpResult probe, get;
  std::uint64_t committed = 0;
};

Round fill_probe_get(StoreSetup setup, NodeId prober) {
  Store store(setup);
  store.to_ssd(kNode0, items(0, 8));
  Round round;
  round.probe = store.probe(prober, keys(0, 8));
  store.run_for(seconds(1));
  round.get = store.get(prober, items(0, 8));
  round.committed = store.master_counters().promotion_committed;
  expect_clean(store);
  return round;
}

std::size_t in_tier(const OpResult& get, Tier tier) {
  std::size_t n = 0;
  for (const KeyOutcome& k : get.keys) n += k.error == Error::OK && k.tier == tier ? 1U : 0U;
  return n;
}

TEST(PrefetchOnExist, KeysProbedWithPrefetchAreReadFromMemory) {
  const Round round = fill_probe_get(small_store(), kNode0);
  EXPECT_EQ(in_tier(round.get, Tier::memory), 8U);
  EXPECT_EQ(round.committed, 8U);
}

TEST(PrefetchOnExist, WithoutATriggerTheSameKeysAreReadFromTheSsd) {
  StoreSetup setup = small_store();
  setup.plan.policy = *policy_preset("none");
  const Round round = fill_probe_get(setup, kNode0);
  EXPECT_EQ(in_tier(round.get, Tier::disk), 8U);
  EXPECT_EQ(round.committed, 0U);
}

TEST(PrefetchOnExist, WithoutAProbeNothingIsPromoted) {
  Store store(small_store());
  store.to_ssd(kNode0, items(0, 8));
  store.run_for(seconds(1));
  EXPECT_EQ(in_tier(store.get(kNode0, items(0, 8)), Tier::disk), 8U);
  EXPECT_EQ(store.counters().promotions_started, 0U);
  expect_clean(store);
}

TEST(PrefetchOnExist, TheAnswerOfTheProbeIsTheSameWithAndWithoutPrefetch) {
  StoreSetup without = small_store();
  without.plan.policy = *policy_preset("none");
  const Round on = fill_probe_get(small_store(), kNode0);
  const Round off = fill_probe_get(without, kNode0);
  EXPECT_EQ(on.probe.present, off.probe.present);
  EXPECT_EQ(on.probe.present, std::vector<bool>(8, true));
  EXPECT_EQ(on.probe.error, off.probe.error);
}

TEST(PrefetchOnExist, KeysOfAnotherHolderArePromotedByThatHolder) {
  const Round round = fill_probe_get(small_store(), kNode1);
  EXPECT_EQ(in_tier(round.get, Tier::memory), 8U);
  EXPECT_EQ(round.committed, 8U);
}

}  // namespace
}  // namespace kvlift::step
