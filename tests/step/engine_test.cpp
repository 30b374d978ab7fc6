// The serving engine: steps, loads, the accelerator's cache, saves, and where TTFT goes.
#include "core/engine.hpp"

#include "tests/step/run_harness.hpp"

namespace kvlift::step {
namespace {

constexpr auto kArrival = [](const RequestRecord& r) { return r.arrival; };
constexpr auto kFirstToken = [](const RequestRecord& r) { return r.first_token; };
constexpr auto kFinish = [](const RequestRecord& r) { return r.finish; };

std::vector<RunPlan> arms() {
  std::vector<RunPlan> list;
  for (const auto load : {EngineSettings::Load::blocks_step, EngineSettings::Load::asynchronous}) {
    for (const char* preset : {"none", "promotion-on-hit", "rfc-4271"}) {
      for (const bool at_arrival : {true, false}) {
        for (const std::int64_t ranks : {1, 2}) {
          RunPlan plan = small_run(6, 4);
          plan.engine.load = load;
          plan.policy = *policy_preset(preset);
          plan.engine.probe_at_arrival = at_arrival;
          plan.engine.ranks = ranks;
          plan.platform.hosts[0].nodes = ranks;
          plan.store.client.ssd_get_wait = milliseconds(20);
          list.push_back(plan);
        }
      }
    }
  }
  return list;
}

double mean_ttft_ms(const PhaseResult& phase) {
  double sum = 0;
  for (const RequestRecord& r : phase.requests) sum += to_milliseconds(r.first_token - r.arrival);
  return sum / static_cast<double>(phase.requests.size());
}

// -- where the time goes ------------------------------------------------------------------------------------------

TEST(Ttft, IsTheSumOfItsPartsInEveryArm) {
  for (const RunPlan& plan : arms()) {
    const Observed seen = observe(plan);
    EXPECT_EQ(seen.last().requests.size(), 6U);
    expect_parts_add_up(seen.result);
  }
}

TEST(Ttft, IsTheSumOfItsPartsWhenLoadsFail) {
  FaultRates rates;
  rates.per_million[static_cast<std::size_t>(Fault::short_read)] = 400'000;
  rates.per_million[static_cast<std::size_t>(Fault::reply_lost)] = 20'000;
  std::int64_t failed = 0;
  for (const RunPlan& plan : arms()) {
    const Observed seen = observe(plan, rates);
    expect_parts_add_up(seen.result);
    for (const RequestRecord& r : seen.last().requests) failed += r.load_failed ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
}

TEST(Ttft, OfAnIdleSerialLoadIsTheSameWithAndWithoutPrefetch) {
  RunPlan with = small_run(6, 1);
  RunPlan without = with;
  without.policy = *policy_preset("none");
  const double a = mean_ttft_ms(observe(with).last());
  const double b = mean_ttft_ms(observe(without).last());
  EXPECT_NEAR(a, b, b * 0.01);
}

TEST(Ttft, UnderQueueingPrefetchTurnsReadsOfTheSsdIntoReadsOfMemory) {
  RunPlan with = small_run(6, 6);
  with.engine.max_num_seqs = 1;
  RunPlan without = with;
  without.policy = *policy_preset("none");
  const PhaseResult on = observe(with).last();
  const PhaseResult off = observe(without).last();
  Tokens on_ssd, off_ssd, on_dram;
  for (const RequestRecord& r : on.requests) on_ssd += r.hit_ssd, on_dram += r.hit_dram;
  for (const RequestRecord& r : off.requests) off_ssd += r.hit_ssd;
  EXPECT_LT(on_ssd, off_ssd);
  EXPECT_GT(on_dram, Tokens{0});
  EXPECT_LT(mean_ttft_ms(on), mean_ttft_ms(off));
}

// -- steps --------------------------------------------------------------------------------------------------------

TEST(Step, NeverComputesMoreThanItsTokenBudget) {
  RunPlan plan = small_run(6, 6);
  plan.engine.max_num_batched_tokens = {48};
  plan.engine.decode_ns_per_sequence = 0;
  plan.workload.prompt_output = {1};
  const Duration longest = plan.engine.step_base + Duration{48 * 100'000};
  bool full = false;
  for (const Span& s : observe(plan).of({.kind = EffectKind::compute})) {
    EXPECT_LE(s.effect.span, longest);
    full = full || s.effect.span == longest;
  }
  EXPECT_TRUE(full) << "the budget was never used up";
}

TEST(Step, NoMoreSequencesRunThanThereArePlaces) {
  for (const auto load : {EngineSettings::Load::blocks_step, EngineSettings::Load::asynchronous}) {
    RunPlan plan = small_run(8, 8);
    plan.engine.load = load;
    plan.engine.max_num_seqs = 3;
    plan.workload.prompt_output = {50};
    const Observed seen = observe(plan);
    EXPECT_EQ(most_at_once(seen.last().requests, kFirstToken, kFinish), 3);
  }
}

TEST(Step, EveryOutputTokenCostsOne) {
  RunPlan plan = small_run(1, 1);
  plan.workload.prompt_output = {10};
  const RequestRecord r = observe(plan).last().requests[0];
  EXPECT_EQ(r.finish - r.first_token, Duration{9 * (milliseconds(5).ns + 100'000)});
}

TEST(Step, AStepThatBlocksOnLoadsComputesNothingMeanwhile) {
  RunPlan plan = small_run(6, 6);
  plan.policy = *policy_preset("none");
  plan.engine.load = EngineSettings::Load::blocks_step;
  plan.workload.prompt_output = {30};
  const Observed seen = observe(plan);
  const auto reads = seen.of(disk_read(Component::staged_read));
  const auto steps = seen.of({.kind = EffectKind::compute});
  EXPECT_FALSE(reads.empty());
  for (const Span& read : reads) {
    for (const Span& step : steps) EXPECT_FALSE(overlap(read, step));
    for (const Span& other : reads) EXPECT_TRUE(read.effect.id == other.effect.id || !overlap(read, other));
  }
}

TEST(Step, LoadsThatGoOnAsideOverlapWithSteps) {
  RunPlan plan = small_run(6, 6);
  plan.policy = *policy_preset("none");
  plan.workload.prompt_output = {30};
  const Observed seen = observe(plan);
  bool overlapped = false;
  for (const Span& read : seen.of(disk_read(Component::staged_read))) {
    for (const Span& step : seen.of({.kind = EffectKind::compute})) overlapped = overlapped || overlap(read, step);
  }
  EXPECT_TRUE(overlapped);
}

TEST(Step, NoMoreLoadsRunThanAllowed) {
  for (const std::int64_t allowed : {1, 3}) {
    RunPlan plan = small_run(8, 8);
    plan.policy = *policy_preset("none");
    plan.engine.loads_at_once = allowed;
    const auto reads = observe(plan).of(disk_read(Component::staged_read));
    std::int64_t most = 0;
    for (const Span& a : reads) {
      std::int64_t n = 0;
      for (const Span& b : reads) n += b.begin <= a.begin && a.begin < b.end ? 1 : 0;
      most = std::max(most, n);
    }
    EXPECT_EQ(most, allowed);
  }
}

// -- loads --------------------------------------------------------------------------------------------------------

TEST(Load, ThatFailsIsMarkedAndItsTokensAreComputedAgain) {
  for (const auto load : {EngineSettings::Load::blocks_step, EngineSettings::Load::asynchronous}) {
    RunPlan plan = small_run(4, 2);
    plan.policy = *policy_preset("none");
    plan.engine.load = load;
    FaultRates rates;
    rates.per_million[static_cast<std::size_t>(Fault::read_error)] = 1'000'000;
    const Observed seen = observe(plan, rates);
    EXPECT_EQ(seen.last().requests.size(), 4U);
    for (const RequestRecord& r : seen.last().requests) {
      EXPECT_TRUE(r.load_failed);
      EXPECT_EQ(r.hit_ssd, Tokens{0});
      EXPECT_GE(r.prefill, Duration{100 * 100'000});
    }
    expect_parts_add_up(seen.result);
  }
}

TEST(Load, OnlyFullBlocksCountAndOneTokenIsAlwaysComputed) {
  for (const std::int64_t tokens : {96, 97, 100, 112}) {
    RunPlan plan = small_run(1, 1);
    plan.workload.prompt_tokens = {tokens};
    const RequestRecord r = observe(plan).last().requests[0];
    EXPECT_EQ(r.hit_dram + r.hit_ssd, Tokens{(tokens - 1) / 16 * 16}) << tokens;
    EXPECT_GE(r.prefill, Duration{100'000}) << tokens;
  }
}

TEST(Load, HitsAreTheSameWhateverTheTierAndTheRestIsComputed) {
  for (const RunPlan& plan : arms()) {
    const Observed seen = observe(plan);
    for (const RequestRecord& r : seen.last().requests) {
      EXPECT_EQ(r.hit_gpu + r.hit_dram + r.hit_ssd, Tokens{96});
      EXPECT_GE(r.prefill, Duration{4 * 100'000});  // its own part of steps that it shares
    }
  }
}

// -- the accelerator's cache ----------------------------------------------------------------------------------------

TEST(GpuCacheTest, MatchesLeadingBlocksOnly) {
  GpuCache cache(8);
  cache.insert({1, 2, 3}, 3);
  EXPECT_EQ(cache.match({1, 2, 9, 3}, 4), 2U);
  EXPECT_EQ(cache.match({2, 3}, 2), 2U);
  EXPECT_EQ(cache.match({9, 1}, 2), 0U);
  EXPECT_EQ(cache.match({1, 2, 3}, 2), 2U);
}

TEST(GpuCacheTest, EvictsTheLeastRecentlyUsedPrefixFromItsTail) {
  GpuCache cache(4);
  cache.insert({1, 2}, 2);
  cache.insert({11, 12}, 2);
  EXPECT_EQ(cache.match({1, 2}, 2), 2U);  // younger than 11, 12 now
  cache.insert({21}, 1);
  EXPECT_EQ(cache.match({11, 12}, 2), 1U);
  EXPECT_EQ(cache.match({1, 2}, 2), 2U);
}

TEST(GpuCacheTest, OfNoBlocksKeepsNothing) {
  GpuCache cache(0);
  cache.insert({1}, 1);
  EXPECT_EQ(cache.match({1}, 1), 0U);
}

TEST(Engine, BlocksInTheAcceleratorAreNeitherProbedNorLoaded) {
  RunPlan plan = small_run(2, 1);
  plan.engine.gpu_cache_blocks = 1'000;
  const Observed seen = observe(plan);
  for (const RequestRecord& r : seen.last().requests) {
    EXPECT_EQ(r.hit_gpu, Tokens{96});
    EXPECT_EQ(r.hit_ssd + r.hit_dram, Tokens{0});
  }
  EXPECT_EQ(count_of(seen.last().counters, "gets"), 0U);
  EXPECT_EQ(count_of(seen.last().counters, "probe_keys"), 0U);
}

// -- keys and saves -----------------------------------------------------------------------------------------------

TEST(Engine, RanksThatShareKeysReadEachKeyEachAndSaveItOnce) {
  for (const bool share : {true, false}) {
    RunPlan plan = small_run(3, 1);
    plan.policy = *policy_preset("none");
    plan.engine.ranks = 2;
    plan.engine.ranks_share_keys = share;
    plan.platform.hosts[0].nodes = 2;
    const Observed seen = observe(plan);
    const std::uint64_t blocks = 3 * 6;
    EXPECT_EQ(count_of(seen.result.phases[0].counters, "put_keys_stored"), share ? blocks : blocks * 2);
    EXPECT_EQ(count_of(seen.last().counters, "probe_keys"), share ? blocks : blocks * 2);
    EXPECT_EQ(count_of(seen.last().counters, "get_keys_disk"), blocks * 2);
    const std::uint64_t block_bytes = 16 * 65'536;
    EXPECT_EQ(count_of(seen.last().counters, "bytes_read_ssd"), blocks * block_bytes * (share ? 2 : 1));
  }
}

TEST(Engine, SavesOnlyWhatItComputed) {
  const Observed seen = observe(small_run(4, 2));
  EXPECT_EQ(count_of(seen.result.phases[0].counters, "put_keys_stored"), 24U);
  EXPECT_EQ(count_of(seen.last().counters, "puts"), 0U);
}

TEST(Engine, SavesNothingWhenItIsToldNotTo) {
  RunPlan plan = small_run(4, 2);
  plan.engine.save_after_prefill = false;
  const Observed seen = observe(plan);
  EXPECT_EQ(count_of(seen.result.phases[0].counters, "puts"), 0U);
  for (const RequestRecord& r : seen.last().requests) EXPECT_EQ(r.hit_ssd + r.hit_dram, Tokens{0});
}

TEST(Engine, AClosedLoopNeverHasMoreRequestsThanClients) {
  for (const std::int64_t clients : {1, 2, 5}) {
    const Observed seen = observe(small_run(10, clients));
    EXPECT_EQ(most_at_once(seen.last().requests, kArrival, kFinish), clients);
  }
}

}  // namespace
}  // namespace kvlift::step
