#include "tools/experiment/experiment.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "tools/experiment/process_pool.hpp"
#include "tools/experiment/result_bytes.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

void check_result(const RunResult& result, const Settings& settings, const std::string& name) {
  const std::vector<Phase>& phases = settings.workload.phases;
  const bool same = std::equal(phases.begin(), phases.end(), result.phases.begin(), result.phases.end(),
                               [](const Phase& asked, const PhaseResult& got) { return asked.name == got.name; });
  if (!same) throw RunError(name + ": the driver did not return the phases of the plan");
}

/// What the source throws ends the requests, and is thrown when the run is over: drivers are not built to be left in
/// the middle of an event, and SimGrid complains on stderr of what it finds half done.
RunResult run_plan(const Driver& driver, RunPlan plan) {
  std::exception_ptr failure;
  if (plan.workload.source) {
    plan.workload.source = [source = std::move(plan.workload.source), &failure](Request& request) {
      try {
        return !failure && source(request);
      } catch (...) {
        failure = std::current_exception();
        return false;
      }
    };
  }
  RunResult result = driver(plan);
  if (failure) std::rethrow_exception(failure);
  return result;
}

}  // namespace

ExperimentResult run_experiment(const Scenario& scenario, const Drivers& drivers, const ExperimentOptions& options) {
  const Driver& driver = find_driver(drivers, options.driver);
  ExperimentResult result;
  result.driver = options.driver;
  for (const Arm& arm : scenario.arms) {
    if (options.arms.empty()) result.arms.push_back(&arm);
  }
  for (const std::string& name : options.arms) result.arms.push_back(&scenario.arm(name));
  const std::int64_t seeds = options.seeds > 0 ? options.seeds : scenario.seeds;
  for (std::int64_t seed = 1; seed <= seeds; ++seed) result.seeds.push_back(static_cast<std::uint64_t>(seed));

  // Arm after arm of one seed: where runs take real time, what the machine does meanwhile meets all arms alike.
  const std::size_t tasks = result.arms.size() * result.seeds.size();
  const auto arm_of = [&](std::size_t task) -> const Arm& { return *result.arms[task % result.arms.size()]; };
  const auto seed_of = [&](std::size_t task) { return result.seeds[task / result.arms.size()]; };
  ProcessPool pool;
  pool.jobs = options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  pool.name = [&](std::size_t task) {
    return scenario.name + ": arm " + arm_of(task).name + ", seed " + std::to_string(seed_of(task));
  };
  pool.work = [&](std::size_t task) {
    return to_bytes(run_plan(driver, make_plan(arm_of(task).settings, seed_of(task))));
  };
  if (options.on_progress) pool.on_progress = [&](std::size_t done) { options.on_progress(done, tasks); };

  std::vector<std::string> answers = run_all(pool, tasks);
  result.runs.resize(result.arms.size());
  for (std::size_t task = 0; task < tasks; ++task) {
    RunResult run = result_from_bytes(answers[task]);
    answers[task] = {};
    check_result(run, arm_of(task).settings, pool.name(task));
    result.runs[task % result.arms.size()].push_back(std::move(run));
  }
  return result;
}

}  // namespace kvlift::experiment
