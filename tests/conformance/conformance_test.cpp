// One suite for every driver: the same plan gives the same decisions, whoever performs the effects.
//
// Plans have no contention, so that the drivers' models of time agree on every order. Each run happens in a child
// process, since SimGrid allows one engine to a process; what was measured comes back through a pipe.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "real/run.hpp"
#include "sim/run.hpp"
#include "tests/step/run.hpp"
#include "tests/step/run_harness.hpp"

namespace kvlift::step {
namespace {

struct Driver {
  const char* name;
  RunResult (*run)(const RunPlan& plan);
  bool models_time = true;  ///< false: its clock is this machine's, which gives no run twice
};
std::ostream& operator<<(std::ostream& out, const Driver& d) { return out << d.name; }

/// On this machine's SSD and memory, in the platform's time; five of the plan's seconds in one of the machine's.
RunResult run_for_real(const RunPlan& plan) {
  real::RealOptions options;
  options.folder = testing::TempDir();
  options.time_scale = 5;
  options.stand_in = {.ssd = true, .memory_and_links = true, .calls = true};
  options.sync = false;
  return real::run(plan, options);
}

const std::vector<Driver> kDrivers = {
    {"step", [](const RunPlan& plan) { return step::run(plan); }},
    {"sim", [](const RunPlan& plan) { return sim::run(plan); }},
    {"real", run_for_real, false},
};

/// What a run decided, line by line; times only where a test asks for them.
std::string decisions(const RunResult& result) {
  std::string text;
  const auto add = [&text](const std::string& name, std::uint64_t value) {
    text += name + ' ' + std::to_string(value) + '\n';
  };
  for (const PhaseResult& phase : result.phases) {
    text += "phase " + phase.name + '\n';
    add("requests", phase.requests.size());
    for (const char* counter :
         {"probes", "probe_keys", "probe_hits", "keys_triggered", "promotions_started", "promotions_completed",
          "promotions_failed", "promotions_skipped", "promotion_committed", "gets", "get_keys_memory", "get_keys_disk",
          "get_keys_missed", "get_keys_failed", "put_keys_stored", "bytes_read_ssd", "bytes_written_ssd",
          "bytes_promoted"})
      add(counter, count_of(phase.counters, counter));
    std::vector<RequestRecord> by_end = phase.requests;
    std::stable_sort(by_end.begin(), by_end.end(),
                     [](const RequestRecord& a, const RequestRecord& b) { return a.finish < b.finish; });
    for (const RequestRecord& r : by_end) {
      text += "ended " + std::to_string(r.id) + " gpu " + std::to_string(r.hit_gpu.value) + " dram " +
              std::to_string(r.hit_dram.value) + " ssd " + std::to_string(r.hit_ssd.value) + '\n';
    }
  }
  return text;
}

/// What a run decided over all its phases. On a machine's own clock the work of one phase may end in the next.
std::string totals(const RunResult& result) {
  RunResult whole;
  whole.phases.resize(1);
  std::map<std::string, std::uint64_t> sums;
  for (const PhaseResult& phase : result.phases) {
    whole.phases[0].requests.insert(whole.phases[0].requests.end(), phase.requests.begin(), phase.requests.end());
    for (const auto& [name, count] : phase.counters) sums[name] += count;
  }
  whole.phases[0].counters.assign(sums.begin(), sums.end());
  return decisions(whole);
}

/// Every time that was measured.
std::string times(const RunResult& result) {
  std::string text = std::to_string(result.trace_hash) + ' ' + std::to_string(result.effects) + '\n';
  for (const PhaseResult& phase : result.phases) {
    text += std::to_string(phase.start.ns) + ' ' + std::to_string(phase.end.ns) + '\n';
    for (const RequestRecord& r : phase.requests) {
      for (const std::int64_t ns : {r.arrival.ns, r.queue.ns, r.load_dram.ns, r.load_ssd.ns, r.wait_promotion.ns,
                                    r.prefill.ns, r.first_step.ns, r.first_token.ns, r.finish.ns})
        text += std::to_string(ns) + ' ';
      text += '\n';
    }
  }
  return text;
}

/// Requests whose parts are negative or do not add up.
std::string wrong_parts(const RunResult& result) {
  std::string wrong;
  for (const PhaseResult& phase : result.phases) {
    for (const RequestRecord& r : phase.requests) {
      const Duration parts[] = {r.queue, r.load_dram, r.load_ssd, r.wait_promotion, r.prefill, r.first_step};
      Duration sum;
      bool negative = false;
      for (const Duration part : parts) sum = sum + part, negative = negative || part.ns < 0;
      if (negative || sum != r.first_token - r.arrival) wrong += phase.name + ' ' + std::to_string(r.id) + '\n';
    }
  }
  return wrong;
}

/// Runs the plan in a child and brings back what `tell` says about it; "died" when the child did not end well.
std::string in_child(const Driver& driver, const RunPlan& plan, std::string (*tell)(const RunResult&)) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string text = tell(driver.run(plan));
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0) _exit(1);
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = read(ends[0], buffer, sizeof buffer); n > 0; n = read(ends[0], buffer, sizeof buffer))
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return "died";
  return text;
}

struct Plan {
  const char* name;
  RunPlan plan;
};

/// Two nodes on two hosts, one client: nothing ever competes.
RunPlan two_nodes(const char* preset) {
  RunPlan plan = small_run(4, 1);
  plan.policy = *policy_preset(preset);
  plan.platform.hosts[0].count = 2;
  return plan;
}

std::vector<Plan> plans() {
  std::vector<Plan> list = {{"offload_only", two_nodes("none")},
                            {"on_hit", two_nodes("promotion-on-hit")},
                            {"prefetch", two_nodes("rfc-4271")}};
  Plan waits{"prefetch_with_wait", two_nodes("rfc-4271")};
  waits.plan.store.client.ssd_get_wait = milliseconds(200);
  list.push_back(waits);
  Plan blocking{"blocking_loads", two_nodes("rfc-4271")};
  blocking.plan.engine.load = EngineSettings::Load::blocks_step;
  list.push_back(blocking);
  Plan accelerator{"accelerator_cache", two_nodes("none")};
  accelerator.plan.engine.gpu_cache_blocks = 12;
  list.push_back(accelerator);
  return list;
}

class EveryDriver : public testing::TestWithParam<Driver> {};

TEST_P(EveryDriver, DecidesAsTheStepDriverDoes) {
  const auto tell = GetParam().models_time ? decisions : totals;
  for (Plan p : plans()) {
    Phase end;
    end.name = "end";
    end.kind = Phase::Kind::pause;
    end.span = seconds(1);
    p.plan.workload.phases.push_back(end);  // promotions that nobody waited for end as well
    EXPECT_EQ(in_child(GetParam(), p.plan, tell), tell(step::run(p.plan))) << p.name;
  }
}

TEST_P(EveryDriver, MakesTtftTheSumOfItsParts) {
  for (const Plan& p : plans()) {
    // A run on this machine's clock takes seconds; one with every part has to do.
    if (!GetParam().models_time && std::string(p.name) != "prefetch_with_wait") continue;
    EXPECT_EQ(in_child(GetParam(), p.plan, wrong_parts), "") << p.name;
  }
}

TEST_P(EveryDriver, GivesTheSameBytesForTheSameSeed) {
  if (!GetParam().models_time) GTEST_SKIP() << "its clock is this machine's";
  for (const Plan& p : plans()) {
    const std::string first = in_child(GetParam(), p.plan, times);
    EXPECT_NE(first, "died");
    EXPECT_EQ(first, in_child(GetParam(), p.plan, times)) << p.name;
  }
}

TEST_P(EveryDriver, ReadsPrefetchedKeysFromMemoryWhenThereIsAQueue) {
  RunPlan plan = two_nodes("rfc-4271");
  plan.workload.phases.back().concurrency = 4;
  plan.engine.max_num_seqs = 1;
  const auto reads_memory = [](const RunResult& r) {
    return std::to_string(count_of(r.phases.back().counters, "get_keys_memory") > 0);
  };
  EXPECT_EQ(in_child(GetParam(), plan, reads_memory), "1");
  plan.policy = *policy_preset("none");
  EXPECT_EQ(in_child(GetParam(), plan, reads_memory), "0");
}

INSTANTIATE_TEST_SUITE_P(Drivers, EveryDriver, testing::ValuesIn(kDrivers),
                         [](const auto& at) { return std::string(at.param.name); });

}  // namespace
}  // namespace kvlift::step
