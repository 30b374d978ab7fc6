#include "tools/kvlift/experiment_command.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <list>
#include <set>
#include <stdexcept>
#include <utility>

#include "tools/experiment/lease_pressure.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/output_file.hpp"
#include "tools/experiment/report.hpp"
#include "tools/experiment/request_log.hpp"
#include "tools/kvlift/drivers.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift {
namespace {

namespace ex = kvlift::experiment;
using Clock = std::chrono::steady_clock;

/// Says how far the runs are: first after a second, then each second to a terminal and every ten to a file.
class Progress {
 public:
  void operator()(std::size_t done, std::size_t all) {
    const Clock::time_point now = Clock::now();
    if (now < next_ || done == all) return;
    next_ = now + (isatty(STDERR_FILENO) != 0 ? std::chrono::seconds(1) : std::chrono::seconds(10));
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    spdlog::info("{} of {} runs done after {} s", done, all, ex::fixed_text(elapsed, 0));
  }

 private:
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

/// The files that were asked for. Opened before the runs, complete after them, absent when something fails.
class Files {
 public:
  /// The first constructor is complete before the second opens files, so that an error leaves no folder behind.
  explicit Files(const ex::Scenario& scenario) : scenario_files_(files_of(scenario)) {}
  Files(const ExperimentCommand& command, const ex::Scenario& scenario) : Files(scenario) {
    if (!command.out_folder.empty()) {
      make_folder(command.out_folder);
      const std::filesystem::path folder = command.out_folder;
      result_ = open(folder / "result.json");
      scenario_ = open(folder / "scenario.json");
      request_files_.push_back(open(folder / "requests.jsonl"));
    }
    if (!command.requests_file.empty()) request_files_.push_back(open(command.requests_file));
    if (!command.timeline_file.empty()) timeline_ = open(command.timeline_file);
  }
  ~Files() {
    open_.clear();
    std::error_code ignored;
    if (!committed_ && !made_.empty()) std::filesystem::remove(made_, ignored);  // only when empty
  }

  void write(const ex::Scenario& scenario, const ex::ExperimentResult& result, const ex::Summary& summary) {
    if (result_ != nullptr) result_->stream() << ex::report_json(summary).dump(2) << "\n";
    if (scenario_ != nullptr) {
      ex::Json tree = scenario.tree;
      tree.erase("based_on");
      tree["name"] = scenario.name;
      scenario_->stream() << tree.dump(2) << "\n";
    }
    for (ex::OutputFile* file : request_files_) ex::write_requests(file->stream(), result);
    if (timeline_ != nullptr) ex::write_timeline(timeline_->stream(), result);
    for (ex::OutputFile& file : open_) file.commit();
    committed_ = true;
  }

 private:
  /// What the run reads.
  static std::set<std::filesystem::path> files_of(const ex::Scenario& scenario) {
    std::set<std::filesystem::path> files;
    for (const auto& [file, tree] : scenario.layers) files.insert(ex::place_of(file));
    for (const ex::Arm& arm : scenario.arms) files.insert(ex::place_of(arm.settings.trace.path));
    return files;
  }
  ex::OutputFile* open(const std::filesystem::path& path) {
    ex::OutputFile& file = open_.emplace_back(path);
    if (scenario_files_.contains(file.place())) throw UserError(path.string() + ": is read by this run");
    for (const ex::OutputFile& other : open_) {
      if (&other != &file && other.place() == file.place()) throw UserError(path.string() + ": is asked for twice");
    }
    return &file;
  }
  void make_folder(const std::string& folder) {
    std::error_code error;
    if (std::filesystem::create_directories(folder, error)) made_ = folder;
    if (error) throw UserError(folder + ": cannot be made: " + error.message());
  }

  std::set<std::filesystem::path> scenario_files_;
  std::list<ex::OutputFile> open_;
  ex::OutputFile* result_ = nullptr;
  ex::OutputFile* scenario_ = nullptr;
  ex::OutputFile* timeline_ = nullptr;
  std::vector<ex::OutputFile*> request_files_;
  std::filesystem::path made_;
  bool committed_ = false;
};

ex::ExperimentResult run(const ExperimentCommand& command, const ex::Scenario& scenario) {
  command.real.check(command.driver);
  ex::ExperimentOptions options = command.experiment_options();
  for (const std::string& warning : ex::lease_warnings(scenario, options.arms)) spdlog::warn("{}", warning);
  Progress progress;
  options.on_progress = [&](std::size_t done, std::size_t all) { progress(done, all); };
  return ex::run_experiment(scenario, linked_drivers(command.real), options);
}

}  // namespace

void ExperimentCommand::add_options(CLI::App& command, std::vector<std::string> formats) {
  command
      .add_option("--driver", driver,
                  "sim: SimGrid's clock and resources; step: order of events only; real: this machine's SSD and memory")
      ->capture_default_str();
  command.add_option("--seeds", seeds, "Runs of each arm, with seeds 1 to N (default: the scenario's)")
      ->check(CLI::Range(std::int64_t{1}, ex::kSeedsMax));
  command.add_option("--jobs", jobs, "Runs at the same time (default: as many as there are cores)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--set", sets, "PATH=VALUE over the scenario, e.g. engine.ranks=4 or arms.B.policy.get_wait=off")
      ->allow_extra_args(false);
  command.add_option("--format", format, "How to print")
      ->check(CLI::IsMember(std::move(formats)))
      ->capture_default_str();
  command.add_option("--slo-ttft-ms", slo_ttft_ms, "Also count requests per second whose TTFT is within this")
      ->check(CLI::Range(1e-6, 1e9));
  real.add_options(command);
}

void ExperimentCommand::add_file_options(CLI::App& command) {
  command.add_option("--out", out_folder, "Folder for result.json, requests.jsonl and the scenario as it was run");
  command.add_option("--timeline", timeline_file, "File for a Chrome trace of the requests (opens in Perfetto)");
  command.add_option("--requests", requests_file, "File for one JSON line per request");
}

ex::ExperimentOptions ExperimentCommand::experiment_options() const {
  ex::ExperimentOptions options;
  options.driver = driver;
  options.arms = arms;
  options.seeds = seeds;
  // Runs on real devices would measure each other.
  options.jobs = driver == "real" ? 1 : jobs;
  return options;
}

std::vector<ex::SetOption> ExperimentCommand::set_options() const {
  std::vector<ex::SetOption> options;
  for (const std::string& text : sets) options.push_back(ex::parse_set_option(text));
  return options;
}

ex::Summary ExperimentCommand::carry_out(const ex::Scenario& scenario, bool measured_only) const {
  Files files(*this, scenario);
  const Clock::time_point start = Clock::now();
  const ex::ExperimentResult result = run(*this, scenario);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  const ex::Summary summary = ex::summarise(scenario, result, {measured_only, slo_ttft_ms});
  files.write(scenario, result, summary);
  std::size_t requests = 0;
  for (const auto& runs : result.runs) {
    for (const RunResult& one : runs) {
      for (const PhaseResult& phase : one.phases) requests += phase.requests.size();
    }
  }
  spdlog::info("{} requests in {} s of wall time, {} requests/s", requests, ex::fixed_text(elapsed, 2),
               ex::fixed_text(static_cast<double>(requests) / std::max(elapsed, 1e-9), 0));
  print(format == "json" ? ex::report_json(summary).dump(2) + "\n" : ex::report_table(summary, scenario.measured));
  return summary;
}

ex::Summary ExperimentCommand::summary_of(const ex::Scenario& scenario, bool measured_only) const {
  return ex::summarise(scenario, run(*this, scenario), {measured_only, slo_ttft_ms});
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw std::runtime_error("stdout does not take the result");
}

}  // namespace kvlift
