// A whole run: phases, workloads, what is measured.
#include "core/world.hpp"

#include "tests/step/run.hpp"
#include "tests/step/run_harness.hpp"

namespace kvlift::step {
namespace {

TEST(World, PhasesFollowEachOtherWithoutAGap) {
  const RunResult r = observe(small_run()).result;
  ASSERT_EQ(r.phases.size(), 3U);
  EXPECT_EQ(r.phases[0].name, "fill");
  EXPECT_EQ(r.phases[0].end, r.phases[1].start);
  EXPECT_EQ(r.phases[1].end, r.phases[2].start);
  EXPECT_EQ(r.phases[1].end - r.phases[1].start, seconds(10));
}

TEST(World, EveryPromptOfAPhaseIsServedOnceInOrderOfItsNumber) {
  const RunResult r = observe(small_run(6, 3)).result;
  std::vector<std::uint64_t> ids;
  for (const RequestRecord& q : r.phases[2].requests) ids.push_back(q.id);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{6, 7, 8, 9, 10, 11}));
}

TEST(World, CountersOfAPhaseAreWhatItAdded) {
  const RunPlan plan = small_run();
  World world(plan);
  StepDriver driver(plan.platform, plan.seed, FaultRates::none());
  world.start(driver.now());
  driver.take(world.effects());
  for (Completion c; !world.done() && driver.next(c);) {
    world.on(c, driver.now());
    driver.take(world.effects());
  }
  for (const auto& [name, total] : world.cluster().named_counters()) {
    std::uint64_t sum = 0;
    for (const PhaseResult& p : world.result().phases) sum += count_of(p.counters, name);
    EXPECT_EQ(sum, total) << name;
  }
}

TEST(World, TheSamePlanGivesTheSameRun) {
  const RunPlan plan = small_run(6, 4);
  EXPECT_EQ(run(plan).trace_hash, run(plan).trace_hash);
  EXPECT_EQ(run(plan).trace_hash, observe(plan).result.trace_hash) << "being watched changes nothing";
}

TEST(World, AnEmptyWorkloadIsOverAtOnce) {
  RunPlan plan = small_run();
  plan.workload.phases.clear();
  EXPECT_TRUE(run(plan).phases.empty());
  plan = small_run(0);
  EXPECT_EQ(run(plan).phases.size(), 3U);
}

TEST(World, AnOpenLoopServesItsTraceAtItsTimes) {
  RunPlan plan = small_run();
  Phase trace;
  trace.name = "trace";
  trace.kind = Phase::Kind::open_loop;
  plan.workload.phases = {trace};
  int n = 0;
  plan.workload.source = [n](Request& r) mutable {
    if (n == 5) return false;
    r.arrival = Time{} + milliseconds(100 * (n / 2));  // two at a time
    r.input = {40};
    r.output = {2};
    r.block_ids = {7, 8};
    ++n;
    return true;
  };
  const RunResult result = run(plan);
  ASSERT_EQ(result.phases[0].requests.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(result.phases[0].requests[i].id, i);
    EXPECT_EQ(result.phases[0].requests[i].arrival, Time{} + milliseconds(100 * static_cast<std::int64_t>(i / 2)));
  }
  expect_parts_add_up(result);
}

TEST(World, AnArmThatPromotedNothingIsNotExercised) {  // RC-69
  RunPlan plan = small_run(4, 4);
  EXPECT_FALSE(not_exercised(plan.policy, observe(plan).last()));
  plan.store.master.promotion_queue_limit = 0;
  const PhaseResult refused = observe(plan).last();
  EXPECT_TRUE(not_exercised(plan.policy, refused));
  EXPECT_GT(count_of(refused.counters, "prefetch_cap"), 0U) << "the reason is counted";
  EXPECT_FALSE(not_exercised(*policy_preset("none"), refused));
}

TEST(World, EnginesShareTheStoreAndDivideTheRequests) {
  RunPlan plan = small_run(6, 4);
  plan.engine.engines = 2;
  plan.platform.hosts[0].nodes = 2;
  const Observed seen = observe(plan);
  std::map<NodeId, int> steps;
  for (const Span& s : seen.of({.kind = EffectKind::compute})) ++steps[s.effect.node];
  EXPECT_EQ(steps.size(), 2U);
  for (const RequestRecord& r : seen.last().requests) EXPECT_EQ(r.hit_dram + r.hit_ssd, Tokens{96});
  expect_parts_add_up(seen.result);
}

TEST(World, PromotedBytesAgreeWithTheCountOfPromotions) {  // I12
  const PhaseResult p = observe(small_run(6, 6)).last();
  EXPECT_GT(count_of(p.counters, "promotion_committed"), 0U);
  EXPECT_EQ(count_of(p.counters, "bytes_promoted"), count_of(p.counters, "promotion_committed") * 16 * 65'536);
  EXPECT_EQ(count_of(p.counters, "promotion_committed"), count_of(p.counters, "promotions_completed"));
}

}  // namespace
}  // namespace kvlift::step
