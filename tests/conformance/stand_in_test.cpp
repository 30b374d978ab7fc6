// What the executor stands in for is the platform that the simulator simulates: with nothing real in the way, a whole
// contended experiment takes the same times in both.
#include "real/stand_in.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "core/world.hpp"
#include "sim/run.hpp"
#include "tests/step/run_harness.hpp"

namespace kvlift::step {
namespace {

/// Performs nothing: every effect takes the time of the platform that is stood in for.
double mean_ttft_standing_in(const RunPlan& plan) {
  World world(plan);
  real::StandIn stand_in(plan.platform, {.ssd = true, .memory_and_links = true, .calls = true});
  std::multimap<Time, Completion> dates;
  std::map<EffectId, Completion> open;
  Time now;
  const auto take = [&] {
    for (const Effect& e : world.effects()) {
      const Completion c{.id = e.id, .bytes = e.bytes};
      if (e.kind == EffectKind::timer) {
        dates.emplace(std::max(now, e.at), c);
      } else if (e.kind == EffectKind::compute) {
        dates.emplace(now + e.span, c);
      } else if (stand_in.begin(e, now)) {
        open[e.id] = c;
      } else {
        dates.emplace(now, c);
      }
    }
    world.effects().clear();
  };
  world.start(now);
  take();
  std::vector<EffectId> ended;
  while (!world.done()) {
    const Time date = dates.empty() ? kNever : dates.begin()->first;
    now = std::min(date, stand_in.next());
    if (date <= now) {
      const Completion c = dates.begin()->second;
      dates.erase(dates.begin());
      world.on(c, now);
      take();
      continue;
    }
    ended.clear();
    stand_in.advance(now, ended);
    for (const EffectId id : ended) {
      world.on(open.at(id), now);
      open.erase(id);
      take();
    }
  }
  double sum = 0;
  for (const RequestRecord& r : world.result().phases.back().requests)
    sum += to_milliseconds(r.first_token - r.arrival);
  return sum / static_cast<double>(world.result().phases.back().requests.size());
}

/// In a child, since SimGrid allows one engine to a process.
double mean_ttft_simulated(const RunPlan& plan) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunResult result = sim::run(plan);
    double sum = 0;
    for (const RequestRecord& r : result.phases.back().requests) sum += to_milliseconds(r.first_token - r.arrival);
    sum /= static_cast<double>(result.phases.back().requests.size());
    _exit(write(pipe_ends[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
  }
  double mean = 0;
  EXPECT_EQ(read(pipe_ends[0], &mean, sizeof mean), static_cast<ssize_t>(sizeof mean));
  int status = 0;
  waitpid(child, &status, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return mean;
}

TEST(StandIn, TakesTheSimulatorsTimesForAContendedExperiment) {
  for (const char* policy : {"none", "rfc-4271"}) {
    RunPlan plan = small_run(24, 6);
    plan.policy = *policy_preset(policy);
    plan.platform.hosts[0].ssd.read_bandwidth = 0.4e9;
    plan.platform.hosts[0].ssd.stream_bandwidth = 0.2e9;
    plan.engine.loads_at_once = 4;
    const double simulated = mean_ttft_simulated(plan);
    const double stood_in = mean_ttft_standing_in(plan);
    EXPECT_GT(simulated, 1.0);
    EXPECT_NEAR(stood_in / simulated, 1.0, 0.02) << policy << ": " << stood_in << " ms, simulated " << simulated;
  }
}

}  // namespace
}  // namespace kvlift::step
