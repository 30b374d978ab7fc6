#include "tools/experiment/number_text.hpp"
#include "tools/experiment/report.hpp"

namespace kvlift::experiment {
namespace {

/// Nanoseconds in a millisecond figure, parts per million in a share: finer digits are noise.
constexpr int kDecimals = 6;

Json number(double value) {
  const double short_value = rounded(value, kDecimals);
  if (short_value == static_cast<double>(static_cast<std::int64_t>(short_value))) {
    return static_cast<std::int64_t>(short_value);
  }
  return short_value;
}

void put(Json& object, const std::string& name, const Figure& figure) {
  object[name] = number(figure.value);
  if (figure.ci95) object[name + "_ci95"] = number(*figure.ci95);
}

/// A group of figures, and beside it the group of their intervals.
void put_group(Json& object, const std::string& name, const NamedFigures& figures) {
  Json values = Json::object();
  Json intervals = Json::object();
  for (const auto& [figure_name, figure] : figures) {
    values[figure_name] = number(figure.value);
    if (figure.ci95) intervals[figure_name] = number(*figure.ci95);
  }
  object[name] = std::move(values);
  if (!intervals.empty()) object[name + "_ci95"] = std::move(intervals);
}

Json arm_json(const ArmSummary& arm) {
  Json out = Json::object();
  out["requests"] = number(arm.requests.value);
  for (const auto& [name, figure] : arm.figures) put(out, name, figure);
  put_group(out, "ttft_breakdown_ms", arm.breakdown_ms);
  put_group(out, "tokens", arm.tokens);
  put_group(out, "dram", arm.dram);
  put_group(out, "counters", arm.counters);
  return out;
}

Json phase_json(const PhaseSummary& phase, const std::string& baseline) {
  Json out{{"arms", Json::object()}, {"decrease", Json::object()}, {"exercised", Json::object()}};
  for (const ArmSummary& arm : phase.arms) {
    out["arms"][arm.name] = arm_json(arm);
    if (arm.can_promote) out["exercised"][arm.name] = arm.exercised();
    if (!arm.exercised()) {
      Json refusals = Json::object();
      put_group(refusals, arm.name, arm.refusals);
      out["refusals"].update(refusals);
    }
    if (arm.name == baseline) continue;
    if (!arm.decrease.empty()) {
      Json decrease = Json::object();
      for (const auto& [name, figure] : arm.decrease) put(decrease, name, figure);
      out["decrease"][arm.name] = std::move(decrease);
    } else if (!arm.exercised()) {
      out["decrease"][arm.name] = nullptr;
    }
  }
  if (!phase.notes.empty()) out["notes"] = phase.notes;
  return out;
}

}  // namespace

Json report_json(const Summary& summary) {
  Json out{{"scenario", summary.scenario},
           {"version", version_text()},
           {"driver", summary.driver},
           {"seeds", summary.seeds},
           {"baseline", summary.baseline}};
  for (const Summary::Performed& run : summary.performed) {
    Json by = Json::object();
    for (const auto& [name, text] : run.by)
      by[name] = by.contains(name) ? by[name].get<std::string>() + "; " + text : text;
    out["performed_by"].push_back({{"arm", run.arm}, {"seed", run.seed}, {"with", std::move(by)}});
  }
  out["phases"] = Json::object();
  for (const PhaseSummary& phase : summary.phases) out["phases"][phase.name] = phase_json(phase, summary.baseline);
  return out;
}

std::string version_text() {
#ifdef KVLIFT_COMMIT
  return KVLIFT_VERSION " (" KVLIFT_COMMIT ")";
#else
  return KVLIFT_VERSION;
#endif
}

}  // namespace kvlift::experiment
