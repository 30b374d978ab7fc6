#include "tools/experiment/sweep.hpp"

#include <algorithm>

#include "tools/experiment/nearest.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/report.hpp"
#include "tools/experiment/text_table.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

std::string value_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// `people`: percent and a word for "not exercised"; otherwise bare numbers.
TextTable rows(const Vary& vary, const std::vector<SweepPoint>& points, bool people) {
  std::vector<std::string> head{vary.path, "phase", "arm"};
  if (people) {
    head.insert(head.end(), {"TTFT mean, ms", "of baseline", "decrease mean", "p50", "p90", "p99"});
  } else {
    head.insert(head.end(), {"ttft_mean_ms", "baseline_ttft_mean_ms", "exercised"});
    for (const char* name : {"ttft_mean", "ttft_p50", "ttft_p90", "ttft_p99"}) {
      head.push_back(std::string("decrease_") + name);
      head.push_back(std::string("decrease_") + name + "_ci95");
    }
  }
  TextTable table(head);
  for (const SweepPoint& point : points) {
    for (const PhaseSummary& phase : point.summary.phases) {
      std::string baseline_mean;
      for (const ArmSummary& arm : phase.arms) {
        if (arm.name == point.summary.baseline)
          baseline_mean = fixed_text(find_figure(arm.figures, "ttft_mean_ms")->value, people ? 1 : 6);
      }
      for (const ArmSummary& arm : phase.arms) {
        if (arm.name == point.summary.baseline) continue;
        std::vector<std::string> row{value_text(point.value), phase.name, arm.name,
                                     fixed_text(find_figure(arm.figures, "ttft_mean_ms")->value, people ? 1 : 6),
                                     baseline_mean};
        if (!people) row.push_back(arm.exercised() ? "true" : "false");
        if (people && !arm.exercised()) row.push_back("not exercised");
        for (const char* name : {"ttft_mean", "ttft_p50", "ttft_p90", "ttft_p99"}) {
          const Figure* decrease = find_figure(arm.decrease, name);
          if (people && decrease != nullptr) {
            row.push_back(fixed_text(decrease->value * 100, 1) +
                          (decrease->ci95 ? " ± " + fixed_text(*decrease->ci95 * 100, 1) : "") + " %");
          } else if (!people) {
            row.push_back(decrease == nullptr ? "" : fixed_text(decrease->value, 6));
            row.push_back(decrease == nullptr || !decrease->ci95 ? "" : fixed_text(*decrease->ci95, 6));
          }
        }
        table.add(std::move(row));
      }
    }
  }
  return table;
}

}  // namespace

Vary parse_vary(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UserError("--vary: \"" + text + "\" is not path=value,value,...");
  }
  Vary vary{text.substr(0, equals), {}};
  const std::string section = vary.path.substr(0, vary.path.find_first_of(".["));
  const std::vector<std::string>& known = settings_sections();
  if (section != "arms" && std::find(known.begin(), known.end(), section) == known.end())
    throw UserError("--vary: " + vary.path + ": is not a parameter (see kvlift scenario schema)" +
                    did_you_mean(section, known));
  // A comma inside brackets belongs to a value: workload.block_bytes=[1000,2000],[3000]
  int depth = 0;
  std::string value;
  for (const char c : text.substr(equals + 1) + ",") {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c != ',' || depth > 0) {
      value += c;
      continue;
    }
    if (value.empty()) throw UserError("--vary: \"" + text + "\" has an empty value");
    vary.values.push_back(parse_set_option(vary.path + "=" + value).value);
    value.clear();
  }
  if (!value.empty()) throw UserError("--vary: \"" + text + "\": a bracket is open");
  return vary;
}

std::string sweep_table(const Vary& vary, const std::vector<SweepPoint>& points) {
  return rows(vary, points, true).text("");
}

std::string sweep_csv(const Vary& vary, const std::vector<SweepPoint>& points) {
  return rows(vary, points, false).csv();
}

Json sweep_json(const Vary& vary, const std::vector<SweepPoint>& points) {
  Json out{{"vary", vary.path}, {"points", Json::array()}};
  for (const SweepPoint& point : points) {
    out["points"].push_back({{"value", point.value}, {"result", report_json(point.summary)}});
  }
  return out;
}

}  // namespace kvlift::experiment
