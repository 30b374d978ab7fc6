#include <algorithm>
#include <array>
#include <cmath>

#include "tools/experiment/number_text.hpp"
#include "tools/experiment/report.hpp"
#include "tools/experiment/text_table.hpp"

namespace kvlift::experiment {
namespace {

struct Statistic {
  const char* label;
  const char* figure;    ///< in ArmSummary::figures
  const char* decrease;  ///< in ArmSummary::decrease
};
constexpr std::array<Statistic, 4> kTtft{{{"median", "ttft_p50_ms", "ttft_p50"},
                                          {"mean", "ttft_mean_ms", "ttft_mean"},
                                          {"p90", "ttft_p90_ms", "ttft_p90"},
                                          {"p99", "ttft_p99_ms", "ttft_p99"}}};

std::string with_interval(const Figure& figure, int decimals, double factor = 1) {
  std::string text = fixed_text(figure.value * factor, decimals);
  if (figure.ci95) text += " ± " + fixed_text(*figure.ci95 * factor, decimals);
  return text;
}

std::string percent(double share) { return fixed_text(share * 100, 1) + " %"; }

std::string signed_text(double value, int decimals, const std::string& unit) {
  return (rounded(value, decimals) > 0 ? "+" : "") + fixed_text(value, decimals) + unit;
}

std::string lined_up(const TextTable& table) { return table.text("  ", 30, 9); }

class PhaseTable {
 public:
  PhaseTable(const Summary& summary, const PhaseSummary& phase, const Measured& measured)
      : summary_(summary), phase_(phase), measured_(measured) {}

  std::string text() const {
    std::string out =
        "\nphase " + phase_.name + ": " + fixed_text(phase_.arms.front().requests.value, 0) + " requests\n";
    out += ttft() + decreases() + group("TTFT split, mean ms", &ArmSummary::breakdown_ms) + tokens() + state() +
           counters();
    for (const std::string& note : phase_.notes) out += "  note: " + note + "\n";
    return out;
  }

 private:
  std::optional<double> measured(const ArmSummary& arm, const std::string& figure) const {
    return measured_.find(phase_.name, arm.name, figure);
  }

  std::vector<std::string> arm_head(std::string first) const {
    std::vector<std::string> head{std::move(first)};
    for (const ArmSummary& arm : phase_.arms) head.push_back(arm.name);
    return head;
  }

  /// Simulated, and where they were measured: measured and the gap, (simulated - measured) / measured.
  std::string ttft() const {
    std::vector<std::string> head{"TTFT, ms"};
    for (const ArmSummary& arm : phase_.arms) {
      head.push_back(arm.name);
      if (has_measured(arm)) head.insert(head.end(), {"measured", "gap"});
    }
    TextTable table(head);
    const auto add = [&](const char* label, const char* figure, int decimals) {
      std::vector<std::string> row{label};
      for (const ArmSummary& arm : phase_.arms) {
        const Figure simulated = *find_figure(arm.figures, figure);
        row.push_back(with_interval(simulated, decimals));
        if (!has_measured(arm)) continue;
        const auto real = measured(arm, figure);
        row.push_back(real ? fixed_text(*real, decimals) : "");
        row.push_back(real ? signed_text((simulated.value - *real) / *real * 100, 1, " %") : "");
      }
      table.add(std::move(row));
    };
    for (const Statistic& statistic : kTtft) add(statistic.label, statistic.figure, 1);
    add("duration, s", "duration_s", 2);
    add("requests/s", "requests_per_s", 3);
    if (find_figure(phase_.arms.front().figures, "goodput_requests_per_s") != nullptr) {
      add("goodput, requests/s", "goodput_requests_per_s", 3);
    }
    return lined_up(table);
  }

  bool has_measured(const ArmSummary& arm) const {
    return std::any_of(kTtft.begin(), kTtft.end(), [&](const Statistic& s) { return measured(arm, s.figure); });
  }

  std::string decreases() const {
    std::string out;
    const ArmSummary* baseline = nullptr;
    for (const ArmSummary& arm : phase_.arms) baseline = arm.name == summary_.baseline ? &arm : baseline;
    for (const ArmSummary& arm : phase_.arms) {
      if (&arm == baseline || baseline == nullptr) continue;
      if (!arm.exercised()) {
        out += not_exercised_text(arm);
      } else {
        out += decrease_table(*baseline, arm);
      }
    }
    return out;
  }

  std::string decrease_table(const ArmSummary& baseline, const ArmSummary& arm) const {
    const bool real = has_measured(baseline) && has_measured(arm);
    const char* how = summary_.performed.empty() ? "simulated" : "run for real";
    std::vector<std::string> head{"decrease of " + arm.name + " against " + baseline.name, how};
    if (real) head.insert(head.end(), {"measured", "gap, points"});
    TextTable table(head);
    for (const Statistic& statistic : kTtft) {
      const Figure* decrease = find_figure(arm.decrease, statistic.decrease);
      std::vector<std::string> row{statistic.label,
                                   decrease == nullptr ? "-" : with_interval(*decrease, 1, 100) + " %"};
      const auto before = measured(baseline, statistic.figure);
      const auto after = measured(arm, statistic.figure);
      if (real && before && after && decrease != nullptr) {
        const double measured_decrease = (*before - *after) / *before;
        row.push_back(percent(measured_decrease));
        row.push_back(signed_text((decrease->value - measured_decrease) * 100, 1, ""));
      }
      table.add(std::move(row));
    }
    return lined_up(table);
  }

  std::string not_exercised_text(const ArmSummary& arm) const {
    std::string out = "  arm " + arm.name + ": NOT EXERCISED, no decrease to report; refusals by reason:\n";
    if (arm.refusals.empty()) out += "    none counted: nothing asked for a promotion\n";
    TextTable table({"", ""});
    for (const auto& [name, count] : arm.refusals) table.add({name, fixed_text(count.value, 0)});
    const std::string rows = table.text("    ");
    return table.empty() ? out : out + rows.substr(rows.find('\n') + 1);
  }

  std::string group(const std::string& title, NamedFigures ArmSummary::*part) const {
    TextTable table(arm_head(title));
    for (const auto& [name, unused] : phase_.arms.front().*part) {
      std::vector<std::string> row{name};
      for (const ArmSummary& arm : phase_.arms) row.push_back(with_interval(*find_figure(arm.*part, name), 1));
      table.add(std::move(row));
    }
    return lined_up(table);
  }

  std::string tokens() const {
    TextTable table(arm_head("prompt tokens"));
    for (const auto& [name, unused] : phase_.arms.front().tokens) {
      if (name == "prompt") continue;
      std::vector<std::string> row{name};
      for (const ArmSummary& arm : phase_.arms) {
        const double all = find_figure(arm.tokens, "prompt")->value;
        row.push_back(all > 0 ? percent(find_figure(arm.tokens, name)->value / all) : "-");
      }
      table.add(std::move(row));
    }
    return lined_up(table);
  }

  std::string state() const {
    TextTable table(arm_head("DRAM"));
    for (const auto& [name, unused] : phase_.arms.front().dram) {
      std::vector<std::string> row{name};
      for (const ArmSummary& arm : phase_.arms) row.push_back(percent(find_figure(arm.dram, name)->value));
      table.add(std::move(row));
    }
    return lined_up(table);
  }

  std::string counters() const {
    TextTable table(arm_head("counters"));
    std::vector<std::string> names;
    for (const ArmSummary& arm : phase_.arms) {
      for (const auto& [name, figure] : arm.counters) {
        if (figure.value != 0 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      std::vector<std::string> row{name};
      for (const ArmSummary& arm : phase_.arms) {
        const Figure* count = find_figure(arm.counters, name);
        const double value = count == nullptr ? 0 : count->value;
        row.push_back(fixed_text(value, std::nearbyint(value) == value ? 0 : 1));
      }
      table.add(std::move(row));
    }
    return table.empty() ? "" : lined_up(table);
  }

  const Summary& summary_;
  const PhaseSummary& phase_;
  const Measured& measured_;
};

}  // namespace

std::string report_table(const Summary& summary, const Measured& measured) {
  std::string out = summary.scenario + (summary.description.empty() ? "" : ": " + summary.description) + "\n";
  out += "kvlift " + version_text() + ", driver " + summary.driver + ", " + std::to_string(summary.seeds.size()) +
         (summary.seeds.size() == 1 ? " seed" : " seeds (± is the 95 % confidence interval)") + "\n";
  if (!measured.source.empty()) out += "measured: " + measured.source + "\n";
  if (!summary.performed.empty()) {
    const Summary::Performed& first = summary.performed.front();
    out += "\nperformed with (arm " + first.arm + ", seed " + std::to_string(first.seed) + "; all runs in JSON)\n";
    for (const auto& [name, text] : first.by) out += "  " + name + ": " + text + "\n";
  }
  for (const PhaseSummary& phase : summary.phases) out += PhaseTable(summary, phase, measured).text();
  return out;
}

}  // namespace kvlift::experiment
