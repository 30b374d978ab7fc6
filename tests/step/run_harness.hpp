// A small experiment for tests of the engine and of whole runs: one engine in front of a store whose objects go to
// SSD at once and stay in DRAM only under lease, and a driver that tells which effects overlap.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/world.hpp"
#include "tests/step/step_driver.hpp"
#include "tests/step/store_harness.hpp"

namespace kvlift::step {

/// Fill, settle, measure: the same prompts twice, all of them on SSD when they come again.
inline RunPlan small_run(std::int64_t prompts = 6, std::int64_t concurrency = 2) {
  StoreSetup setup = small_store(1, mebibytes(64));
  RunPlan plan;
  plan.store = setup.plan.store;
  plan.store.master.kv_lease_ttl = seconds(2);
  plan.policy = setup.plan.policy;
  plan.platform = setup.platform;
  plan.engine.block_tokens = {16};
  plan.engine.bytes_per_token = {65'536};
  plan.engine.max_num_seqs = 8;
  plan.engine.max_num_batched_tokens = {256};
  plan.engine.step_base = milliseconds(5);
  plan.engine.prefill_ns_per_token = 100'000;
  plan.engine.decode_ns_per_sequence = 100'000;
  plan.workload.prompt_tokens = {100};
  plan.workload.prompt_output = {4};
  Phase fill;
  fill.name = "fill";
  fill.prompts = prompts;
  Phase settle;
  settle.name = "settle";
  settle.kind = Phase::Kind::pause;
  settle.span = seconds(10);
  Phase measure = fill;
  measure.name = "measure";
  measure.concurrency = concurrency;
  measure.measured = true;
  plan.workload.phases = {fill, settle, measure};
  return plan;
}

struct Span {
  Time begin, end;
  Effect effect;
};
inline bool overlap(const Span& a, const Span& b) { return a.begin < b.end && b.begin < a.end; }

struct Observed {
  RunResult result;
  std::vector<Span> spans;  ///< every effect but timers, in order of its beginning
  std::vector<Span> of(const Match& match) const {
    std::vector<Span> list;
    std::copy_if(spans.begin(), spans.end(), std::back_inserter(list),
                 [&](const Span& s) { return match.accepts(s.effect); });
    return list;
  }
  const PhaseResult& last() const { return result.phases.back(); }
};

inline Observed observe(const RunPlan& plan, const FaultRates& rates = FaultRates::none()) {
  Observed seen;
  World world(plan);
  StepDriver driver(plan.platform, plan.seed, rates);
  std::map<EffectId, std::size_t> open;
  const auto take = [&] {
    for (const Effect& e : world.effects()) {
      if (e.kind == EffectKind::timer) continue;
      open[e.id] = seen.spans.size();
      seen.spans.push_back({driver.now(), kNever, e});
    }
    driver.take(world.effects());
  };
  world.start(driver.now());
  take();
  Completion completion;
  while (!world.done() && driver.next(completion)) {
    if (const auto at = open.find(completion.id); at != open.end()) seen.spans[at->second].end = driver.now();
    world.on(completion, driver.now());
    take();
  }
  EXPECT_TRUE(world.done()) << "nothing is under way, and the workload is not over";
  seen.result = world.result();
  return seen;
}

/// TTFT of every request is the sum of its parts, and no part is negative.
inline void expect_parts_add_up(const RunResult& result) {
  for (const PhaseResult& phase : result.phases) {
    for (const RequestRecord& r : phase.requests) {
      const Duration sum = r.queue + r.load_dram + r.load_ssd + r.wait_promotion + r.prefill + r.first_step;
      EXPECT_EQ(sum, r.first_token - r.arrival) << phase.name << " request " << r.id;
      for (const Duration part : {r.queue, r.load_dram, r.load_ssd, r.wait_promotion, r.prefill, r.first_step})
        EXPECT_GE(part.ns, 0) << phase.name << " request " << r.id;
      EXPECT_LE(r.first_token, r.finish);
    }
  }
}

/// The most requests of a phase that are inside [begin, end) at a time.
template <class Begin, class End>
std::int64_t most_at_once(const std::vector<RequestRecord>& requests, Begin begin, End end) {
  std::int64_t most = 0;
  for (const RequestRecord& at : requests) {
    std::int64_t n = 0;
    for (const RequestRecord& r : requests) n += begin(r) <= begin(at) && begin(at) < end(r) ? 1 : 0;
    most = std::max(most, n);
  }
  return most;
}

}  // namespace kvlift::step
