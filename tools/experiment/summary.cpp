#include "tools/experiment/summary.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "tools/experiment/lease_pressure.hpp"
#include "tools/experiment/number_text.hpp"

namespace kvlift::experiment {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

void add_distribution(Numbers& out, const std::string& name, std::vector<double> values) {
  out.emplace_back(name + "_mean_ms", mean(values));
  std::sort(values.begin(), values.end());
  out.emplace_back(name + "_p50_ms", quantile(values, 0.50));
  out.emplace_back(name + "_p90_ms", quantile(values, 0.90));
  out.emplace_back(name + "_p99_ms", quantile(values, 0.99));
}

/// Everything of one phase of one run.
struct PhaseNumbers {
  Numbers figures, breakdown, tokens, dram, counters;
};

Numbers breakdown_of(const std::vector<RequestRecord>& requests) {
  constexpr std::array<std::pair<const char*, Duration RequestRecord::*>, 6> parts{{
      {"queue", &RequestRecord::queue},
      {"load_dram", &RequestRecord::load_dram},
      {"load_ssd", &RequestRecord::load_ssd},
      {"wait_promotion", &RequestRecord::wait_promotion},
      {"prefill", &RequestRecord::prefill},
      {"first_step", &RequestRecord::first_step},
  }};
  Numbers out;
  for (const auto& [name, part] : parts) {
    std::vector<double> values;
    for (const RequestRecord& request : requests) values.push_back(to_milliseconds(request.*part));
    out.emplace_back(name, mean(values));
  }
  return out;
}

Numbers tokens_of(const std::vector<RequestRecord>& requests) {
  Tokens input, gpu, dram, ssd;
  for (const RequestRecord& request : requests) {
    input += request.input;
    gpu += request.hit_gpu;
    dram += request.hit_dram;
    ssd += request.hit_ssd;
  }
  const auto number = [](Tokens tokens) { return static_cast<double>(tokens.value); };
  return {{"prompt", number(input)},
          {"from_gpu", number(gpu)},
          {"from_dram", number(dram)},
          {"from_ssd", number(ssd)},
          {"computed", number(input - gpu - dram - ssd)}};
}

PhaseNumbers numbers_of(const PhaseResult& phase, const SummaryOptions& options) {
  PhaseNumbers out;
  std::vector<double> ttft, e2e, tpot;
  double within_slo = 0, failed = 0;
  for (const RequestRecord& request : phase.requests) {
    ttft.push_back(to_milliseconds(request.first_token - request.arrival));
    e2e.push_back(to_milliseconds(request.finish - request.arrival));
    if (request.output.value > 1) {
      tpot.push_back(to_milliseconds(request.finish - request.first_token) /
                     static_cast<double>(request.output.value - 1));
    }
    failed += request.load_failed ? 1 : 0;
    within_slo += options.slo_ttft_ms && ttft.back() <= *options.slo_ttft_ms ? 1 : 0;
  }
  const double seconds = to_seconds(phase.end - phase.start);
  const auto per_second = [&](double count) { return seconds > 0 ? count / seconds : 0; };
  add_distribution(out.figures, "ttft", std::move(ttft));
  add_distribution(out.figures, "tpot", std::move(tpot));
  add_distribution(out.figures, "e2e", std::move(e2e));
  out.figures.emplace_back("duration_s", seconds);
  out.figures.emplace_back("requests_per_s", per_second(static_cast<double>(phase.requests.size())));
  if (options.slo_ttft_ms) out.figures.emplace_back("goodput_requests_per_s", per_second(within_slo));
  out.figures.emplace_back("load_failed_requests", failed);
  out.breakdown = breakdown_of(phase.requests);
  out.tokens = tokens_of(phase.requests);
  out.dram = {{"used_start", phase.dram_used_start},
              {"used_end", phase.dram_used_end},
              {"leased_mean", phase.dram_leased_mean},
              {"above_watermark", phase.dram_above_watermark}};
  for (const auto& [name, count] : phase.counters) out.counters.emplace_back(name, static_cast<double>(count));
  return out;
}

/// One figure per name from the seeds' numbers. Names are those of the first seed: every run of a driver has the same.
NamedFigures over_seeds(const std::vector<PhaseNumbers>& seeds, Numbers PhaseNumbers::*part) {
  NamedFigures out;
  for (std::size_t i = 0; i < (seeds.front().*part).size(); ++i) {
    std::vector<double> values;
    for (const PhaseNumbers& seed : seeds) {
      const Numbers& numbers = seed.*part;
      values.push_back(i < numbers.size() ? numbers[i].second : 0);
    }
    out.emplace_back((seeds.front().*part)[i].first, figure_of(values));
  }
  return out;
}

NamedFigures decrease_of(const std::vector<PhaseNumbers>& baseline, const std::vector<PhaseNumbers>& arm) {
  NamedFigures out;
  for (std::size_t i = 0; i < 4; ++i) {  // the four of ttft come first
    std::vector<double> values;
    for (std::size_t seed = 0; seed < arm.size(); ++seed) {
      const double before = baseline[seed].figures[i].second;
      if (before > 0) values.push_back((before - arm[seed].figures[i].second) / before);
    }
    const std::string& name = arm.front().figures[i].first;
    if (values.size() == arm.size()) out.emplace_back(name.substr(0, name.size() - 3), figure_of(values));
  }
  return out;
}

ArmSummary summarise_arm(const Arm& arm, const std::vector<RunResult>& runs, std::size_t phase,
                         const std::vector<PhaseNumbers>& numbers) {
  ArmSummary out;
  out.name = arm.name;
  std::vector<double> requests;
  for (const RunResult& run : runs) requests.push_back(static_cast<double>(run.phases[phase].requests.size()));
  out.requests = figure_of(requests);
  out.figures = over_seeds(numbers, &PhaseNumbers::figures);
  out.breakdown_ms = over_seeds(numbers, &PhaseNumbers::breakdown);
  out.tokens = over_seeds(numbers, &PhaseNumbers::tokens);
  out.dram = over_seeds(numbers, &PhaseNumbers::dram);
  out.counters = over_seeds(numbers, &PhaseNumbers::counters);
  // Either switch brings promotion on hit.
  const Policy::Trigger trigger = arm.settings.policy.trigger;
  out.can_promote = (trigger != Policy::Trigger::none && trigger != Policy::Trigger::oracle) ||
                    arm.settings.store.master.promotion_on_hit;
  for (const RunResult& run : runs) {
    const bool committed = count_of(run.phases[phase].counters, "promotion_committed") > 0;
    out.seeds_exercised += out.can_promote && committed ? 1 : 0;
  }
  if (out.exercised()) return out;
  for (const std::string& name : refusal_counters()) {
    const Figure* count = find_figure(out.counters, name);
    if (count != nullptr && count->value > 0) out.refusals.emplace_back(name, *count);
  }
  return out;
}

std::string spread_text(SpreadSettings::Kind kind) {
  switch (kind) {
    case SpreadSettings::Kind::none:
      return "arrive together";
    case SpreadSettings::Kind::even:
      return "are set apart evenly until the next stamp";
    case SpreadSettings::Kind::uniform:
      return "are set apart at random until the next stamp";
  }
  return "";
}

void add_notes(PhaseSummary& phase, const Scenario& scenario, std::size_t seeds) {
  const double requests = phase.arms.front().requests.value;
  if (requests < 100) {
    phase.notes.push_back("n = " + number_text(requests) + ": p99 is one request of each run, the slowest");
  }
  const TraceSettings& trace = scenario.arm(phase.arms.front().name).settings.trace;
  if (!trace.path.empty()) {
    phase.notes.push_back("trace " + std::filesystem::path(trace.path).filename().string() +
                          ": arrivals that share a stamp " + spread_text(trace.spread));
  }
  for (const ArmSummary& arm : phase.arms) {
    if (!arm.exercised()) {
      phase.notes.push_back("arm " + arm.name + " was not exercised: it can promote and committed no promotion");
    } else if (arm.can_promote && arm.seeds_exercised < seeds) {
      phase.notes.push_back("arm " + arm.name + " committed promotions in " + std::to_string(arm.seeds_exercised) +
                            " of " + std::to_string(seeds) + " seeds only");
    }
    const Settings& settings = scenario.arm(arm.name).settings;
    const double prompt = requests > 0 ? find_figure(arm.tokens, "prompt")->value / requests : 0;
    const auto warning = lease_pressure(settings, find_figure(arm.figures, "requests_per_s")->value, prompt, requests);
    if (warning) phase.notes.push_back("arm " + arm.name + ": " + *warning);
  }
}

}  // namespace

const Figure* find_figure(const NamedFigures& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& f) { return f.first == name; });
  return found == figures.end() ? nullptr : &found->second;
}

const std::vector<std::string>& refusal_counters() {
  static const std::vector<std::string> names{
      "keys_deduplicated",     "cooldown_yields",     "triggers_refused_queue_full",
      "kicks_in_cooldown",     "delegations_failed",  "delegations_in_cooldown",
      "keys_already_resident", "keys_query_failed",   "keys_not_in_index",
      "prefetch_unavailable",  "prefetch_not_found",  "prefetch_put_running",
      "prefetch_already",      "prefetch_no_source",  "prefetch_not_holder",
      "prefetch_watermark",    "prefetch_cap",        "on_hit_frequency",
      "on_hit_watermark",      "on_hit_not_found",    "on_hit_in_flight",
      "on_hit_memory_present", "on_hit_no_source",    "on_hit_cap",
      "on_hit_given_up",       "promotion_no_handle", "promotion_failed",
      "promotion_expired",     "promotion_cancelled"};
  return names;
}

Summary summarise(const Scenario& scenario, const ExperimentResult& result, const SummaryOptions& options) {
  Summary summary{scenario.name, scenario.description, result.driver, scenario.baseline, result.seeds, {}, {}};
  for (std::size_t s = 0; s < result.seeds.size(); ++s) {
    for (std::size_t a = 0; a < result.arms.size(); ++a) {
      const RunResult& run = result.runs[a][s];
      if (!run.performed_by.empty())
        summary.performed.push_back({result.arms[a]->name, result.seeds[s], run.performed_by});
    }
  }
  const std::vector<Phase>& phases = result.arms.front()->settings.workload.phases;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (phases[p].kind == Phase::Kind::pause || (options.measured_only && !phases[p].measured)) continue;
    PhaseSummary phase;
    phase.name = phases[p].name;
    std::vector<std::vector<PhaseNumbers>> numbers;
    std::size_t baseline = result.arms.size();
    for (std::size_t a = 0; a < result.arms.size(); ++a) {
      numbers.emplace_back();
      for (const RunResult& run : result.runs[a]) numbers.back().push_back(numbers_of(run.phases[p], options));
      phase.arms.push_back(summarise_arm(*result.arms[a], result.runs[a], p, numbers.back()));
      if (result.arms[a]->name == scenario.baseline) baseline = a;
    }
    for (std::size_t a = 0; a < result.arms.size() && baseline < result.arms.size(); ++a) {
      if (a != baseline && phase.arms[a].exercised())
        phase.arms[a].decrease = decrease_of(numbers[baseline], numbers[a]);
    }
    add_notes(phase, scenario, result.seeds.size());
    summary.phases.push_back(std::move(phase));
  }
  return summary;
}

}  // namespace kvlift::experiment
