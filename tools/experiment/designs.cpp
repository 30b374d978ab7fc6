#include "tools/experiment/designs.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/policy.hpp"
#include "tools/experiment/nearest.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/report.hpp"
#include "tools/experiment/text_table.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOracle = "oracle";

struct Metric {
  std::string_view name;  ///< in CSV and JSON
  std::string_view head;  ///< in the table
  NamedFigures ArmSummary::*group;
  std::string_view figure;
  double scale;  ///< for the table
  int decimals;  ///< for the table
};

constexpr double kPercent = 100, kGigabytes = 1e-9, kPlain = 1;

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> list{
      {"ttft_mean_ms", "TTFT mean, ms", &ArmSummary::figures, "ttft_mean_ms", kPlain, 1},
      {"decrease_ttft_mean", "decrease mean, %", &ArmSummary::decrease, "ttft_mean", kPercent, 1},
      {"decrease_ttft_p50", "p50, %", &ArmSummary::decrease, "ttft_p50", kPercent, 1},
      {"decrease_ttft_p90", "p90, %", &ArmSummary::decrease, "ttft_p90", kPercent, 1},
      {"decrease_ttft_p99", "p99, %", &ArmSummary::decrease, "ttft_p99", kPercent, 1},
      {"bytes_promoted", "promoted, GB", &ArmSummary::counters, "bytes_promoted", kGigabytes, 1},
      {"promotions", "promotions", &ArmSummary::counters, "promotion_committed", kPlain, 0},
      {"promoted_evicted_unused", "evicted unused", &ArmSummary::counters, "promoted_evicted_unused", kPlain, 0},
      {"leases_dangling", "dangling leases", &ArmSummary::counters, "leases_dangling", kPlain, 0},
      {"promotions_doubled", "doubled", &ArmSummary::counters, "promotion_doubled", kPlain, 0},
      {"bytes_reread_ssd", "SSD read again, GB", &ArmSummary::counters, "bytes_reread_ssd", kGigabytes, 1},
      {"dram_leased", "DRAM leased, %", &ArmSummary::dram, "leased_mean", kPercent, 1},
      {"dram_above_watermark", "above watermark, % of time", &ArmSummary::dram, "above_watermark", kPercent, 1},
      {"rpcs_on_path", "RPCs on path", &ArmSummary::counters, "rpcs_on_path", kPlain, 0},
      {"rpcs_off_path", "off path", &ArmSummary::counters, "rpcs_off_path", kPlain, 0},
  };
  return list;
}

/// How much of the oracle's decrease of the mean the arm has; empty without an oracle that gains.
std::optional<double> share_of_possible(const PhaseSummary& phase, const ArmSummary& arm) {
  const Figure* own = find_figure(arm.decrease, "ttft_mean");
  const auto oracle = std::find_if(phase.arms.begin(), phase.arms.end(), [](auto& a) { return a.name == kOracle; });
  const Figure* best = oracle == phase.arms.end() ? nullptr : find_figure(oracle->decrease, "ttft_mean");
  if (own == nullptr || best == nullptr || best->value <= 0) return std::nullopt;
  return own->value / best->value;
}

/// As the scenario's own files see it, a path is relative to them; here it must not depend on who reads it.
void make_trace_absolute(Json& tree) {
  if (node_at(tree, "workload.trace.path") == nullptr) return;
  Json& path = tree["workload"]["trace"]["path"];
  if (const auto text = path.get<std::string>(); !text.empty()) path = fs::absolute(text).lexically_normal().string();
}

std::string name_of(const std::string& design) {
  return design.ends_with(".json") ? fs::path(design).stem().string() : design;
}

Json policy_of(const std::string& design) {
  if (design.ends_with(".json")) return parse_json_file(design);
  std::vector<std::string> known(policy_preset_names().begin(), policy_preset_names().end());
  if (std::find(known.begin(), known.end(), design) == known.end())
    throw UserError("--designs: no design \"" + design + "\"" + did_you_mean(design, known));
  return design;
}

}  // namespace

std::vector<std::string> standard_designs() {
  return {"none",     "promotion-on-hit", "concept-2213", "impl-2646",
          "rfc-4271", "router-3417",      "kvlift",       std::string(kOracle)};
}

Scenario with_designs(const Scenario& scenario, std::vector<std::string> designs, const std::string& baseline) {
  const auto is_baseline = [&](const std::string& design) { return name_of(design) == baseline; };
  if (std::none_of(designs.begin(), designs.end(), is_baseline)) designs.insert(designs.begin(), baseline);
  Json common = scenario.arm(scenario.baseline).overrides;
  common.erase("policy");
  make_trace_absolute(common);
  Json tree = scenario.tree;
  make_trace_absolute(tree);
  for (const char* field : {"based_on", "measured", "sources", "policy", "arms"}) tree.erase(field);
  tree["name"] = scenario.name;
  tree["baseline"] = baseline;
  for (const std::string& design : designs) {
    Json& arm = tree["arms"][name_of(design)];
    if (!arm.is_null()) throw UserError("--designs: \"" + name_of(design) + "\" is there twice");
    arm = common;
    arm["policy"] = policy_of(design);
  }
  return scenario_of(tree.dump(), scenario.file);
}

std::string designs_table(const Summary& summary) {
  std::string text = summary.scenario + ": " + summary.description + "\n";
  for (const PhaseSummary& phase : summary.phases) {
    const auto seeds = std::to_string(summary.seeds.size());
    text += "\nphase " + phase.name + ", against " + summary.baseline + ", " + seeds + " seed" +
            (summary.seeds.size() == 1 ? "" : "s, ± 95 % interval") + "\n";
    std::vector<std::string> head{"design"};
    for (const Metric& metric : metrics()) head.emplace_back(metric.head);
    head.emplace_back("of oracle's, %");
    TextTable table(head);
    for (const ArmSummary& arm : phase.arms) {
      std::vector<std::string> row{arm.name};
      for (const Metric& metric : metrics()) {
        const Figure* figure = find_figure(arm.*metric.group, std::string(metric.figure));
        const bool is_decrease = metric.group == &ArmSummary::decrease;
        if (figure == nullptr) {
          row.emplace_back(is_decrease && arm.exercised() ? "" : "not exercised");
          continue;
        }
        row.push_back(fixed_text(figure->value * metric.scale, metric.decimals));
        if (is_decrease && figure->ci95) row.back() += " ± " + fixed_text(*figure->ci95 * metric.scale, 1);
      }
      const auto share = share_of_possible(phase, arm);
      row.push_back(share ? fixed_text(*share * kPercent, 0) : "");
      table.add(std::move(row));
    }
    text += table.text();
  }
  return text;
}

std::string designs_csv(const Summary& summary) {
  std::vector<std::string> head{"scenario", "phase", "design", "baseline", "seeds", "exercised"};
  for (const Metric& metric : metrics()) {
    head.emplace_back(metric.name);
    head.push_back(std::string(metric.name) + "_ci95");
  }
  head.emplace_back("share_of_oracle");
  TextTable table(head);
  const auto text = [](std::optional<double> value) { return value ? number_text(rounded(*value, 6)) : ""; };
  for (const PhaseSummary& phase : summary.phases) {
    for (const ArmSummary& arm : phase.arms) {
      std::vector<std::string> row{summary.scenario,
                                   phase.name,
                                   arm.name,
                                   summary.baseline,
                                   std::to_string(summary.seeds.size()),
                                   arm.exercised() ? "true" : "false"};
      for (const Metric& metric : metrics()) {
        const Figure* figure = find_figure(arm.*metric.group, std::string(metric.figure));
        row.push_back(figure == nullptr ? "" : text(figure->value));
        row.push_back(figure == nullptr ? "" : text(figure->ci95));
      }
      row.push_back(text(share_of_possible(phase, arm)));
      table.add(std::move(row));
    }
  }
  return table.csv();
}

Json designs_json(const Summary& summary) {
  Json out{{"scenario", summary.scenario},
           {"version", version_text()},
           {"driver", summary.driver},
           {"seeds", summary.seeds},
           {"baseline", summary.baseline}};
  for (const PhaseSummary& phase : summary.phases) {
    for (const ArmSummary& arm : phase.arms) {
      Json& design = out["phases"][phase.name][arm.name];
      design["exercised"] = arm.exercised();
      for (const Metric& metric : metrics()) {
        const Figure* figure = find_figure(arm.*metric.group, std::string(metric.figure));
        if (figure == nullptr) continue;
        design[std::string(metric.name)] = rounded(figure->value, 6);
        if (figure->ci95) design[std::string(metric.name) + "_ci95"] = rounded(*figure->ci95, 6);
      }
      if (const auto share = share_of_possible(phase, arm)) design["share_of_oracle"] = rounded(*share, 6);
    }
  }
  return out;
}

}  // namespace kvlift::experiment
