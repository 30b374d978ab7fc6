// What a set of runs says: figures per phase and arm, and the decrease against the baseline arm.
//
//   decrease = (baseline - arm) / baseline, of the same statistic, paired by seed
//
// Over several seeds a figure is the mean of the seeds' figures, with a 95 % confidence interval. An arm that can
// promote and never did has no decrease: it is *not exercised*, and its refusals by reason take that place.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/experiment/experiment.hpp"
#include "tools/experiment/statistics.hpp"

namespace kvlift::experiment {

using NamedFigures = std::vector<std::pair<std::string, Figure>>;

/// The figure of that name; null pointer when there is none.
const Figure* find_figure(const NamedFigures& figures, const std::string& name);

struct ArmSummary {
  std::string name;
  Figure requests;
  NamedFigures figures;       ///< ttft_, e2e_, tpot_ {mean,p50,p90,p99}_ms, duration_s, requests_per_s, ...
  NamedFigures breakdown_ms;  ///< means over requests; they add up to ttft_mean_ms
  NamedFigures tokens;        ///< of all prompts, by where their KV came from
  NamedFigures dram;          ///< shares of DRAM: used_start, used_end, leased_mean
  NamedFigures counters;
  NamedFigures decrease;  ///< ttft_mean, ttft_p50, ttft_p90, ttft_p99; empty for the baseline
  bool can_promote = false;
  std::size_t seeds_exercised = 0;  ///< seeds in which a promotion was committed
  NamedFigures refusals;            ///< why promotions did not happen; when not exercised
  bool exercised() const { return !can_promote || seeds_exercised > 0; }
};

struct PhaseSummary {
  std::string name;
  std::vector<ArmSummary> arms;
  std::vector<std::string> notes;
};

struct Summary {
  std::string scenario, description, driver, baseline;
  std::vector<std::uint64_t> seeds;
  std::vector<PhaseSummary> phases;
  /// What the runs were performed with: arm, seed, and the driver's own lines; empty from a driver that models time.
  struct Performed {
    std::string arm;
    std::uint64_t seed = 0;
    std::vector<std::pair<std::string, std::string>> by;
  };
  std::vector<Performed> performed;
};

struct SummaryOptions {
  bool measured_only = true;          ///< else every phase that had requests
  std::optional<double> slo_ttft_ms;  ///< gives `goodput_requests_per_s`: requests within it, per second
};

Summary summarise(const Scenario& scenario, const ExperimentResult& result, const SummaryOptions& options);

/// Names of the counters that say why a promotion did not happen, in the order of a promotion's way.
const std::vector<std::string>& refusal_counters();

}  // namespace kvlift::experiment
