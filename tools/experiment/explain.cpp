#include "tools/experiment/explain.hpp"

#include <algorithm>
#include <filesystem>

#include "tools/experiment/text_table.hpp"

namespace kvlift::experiment {
namespace {

/// `path` is `above` or lies below it.
bool is_within(const std::string& path, const std::string& above) {
  if (!path.starts_with(above)) return false;
  return path.size() == above.size() || path[above.size()] == '.' || path[above.size()] == '[';
}

bool is_set(const Scenario& scenario, const std::string& path) {
  const auto& paths = scenario.set_paths;
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& set) { return is_within(path, set); });
}

std::string origin_of(const Scenario& scenario, const Arm& arm, const std::string& path) {
  if (is_set(scenario, "arms." + arm.name + "." + path)) return "--set";
  if (node_at(arm.overrides, path) != nullptr) return "arm " + arm.name;
  const bool of_policy = path.starts_with("policy.");
  const bool arms_own_preset = of_policy && node_at(arm.overrides, "policy.preset") != nullptr;
  if (!arms_own_preset && is_set(scenario, path)) return "--set";
  if (!arms_own_preset && node_at(scenario.tree, path) != nullptr) {
    for (auto layer = scenario.layers.rbegin(); layer != scenario.layers.rend(); ++layer) {
      if (node_at(layer->second, path) != nullptr) return std::filesystem::path(layer->first).filename().string();
    }
  }
  return of_policy && path != "policy.preset" ? "preset " + arm.settings.policy_preset : "default";
}

/// The scenario's word on `path` or the nearest object above it.
std::string source_of(const Scenario& scenario, std::string path) {
  while (true) {
    const auto found = scenario.sources.find(path);
    if (found != scenario.sources.end()) return found->second;
    const std::size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) return "";
    path.resize(cut);
  }
}

Explanation explained(const Scenario& scenario, const Arm& arm, const Parameter& parameter, std::string path,
                      Slot slot) {
  Explanation out;
  out.parameter = &parameter;
  out.value = value_of(parameter, slot);
  out.origin = origin_of(scenario, arm, path);
  if (out.origin == "--set") {
    out.source = "command line";
  } else if (out.is_default()) {
    out.source = parameter.source;
  } else {
    out.source = out.origin == "arm " + arm.name ? source_of(scenario, "arms." + arm.name + "." + path) : "";
    if (out.source.empty()) out.source = source_of(scenario, path);
  }
  out.path = std::move(path);
  return out;
}

}  // namespace

std::vector<Explanation> explain(const Scenario& scenario, const Arm& arm) {
  std::vector<Explanation> out;
  Settings settings = arm.settings;
  const auto list_of = [](const std::string& path) {
    const std::size_t brackets = path.find("[]");
    return brackets == std::string::npos ? std::string() : path.substr(0, brackets);
  };
  const std::vector<Parameter>& table = parameters();
  for (std::size_t first = 0; first < table.size();) {
    // Rows of one list stay together: all of host 0, then all of host 1.
    const std::string list = list_of(table[first].path);
    std::size_t last = first;
    while (last < table.size() && list_of(table[last].path) == list) ++last;
    const std::size_t copies = list.empty()              ? 1
                               : list == "cluster.hosts" ? settings.platform.hosts.size()
                                                         : settings.workload.phases.size();
    for (std::size_t i = 0; i < copies; ++i) {
      for (std::size_t row = first; row < last; ++row) {
        std::string path = table[row].path;
        if (!list.empty()) path.insert(list.size() + 1, std::to_string(i));
        out.push_back(explained(scenario, arm, table[row], std::move(path), table[row].slot(settings, i)));
      }
    }
    first = last;
  }
  return out;
}

std::string explain_table(const Scenario& scenario, const Arm& arm, bool all) {
  std::string out;
  for (const Explanation& line : explain(scenario, arm)) {
    if (!all && line.is_default()) continue;
    std::string value = line.value.is_string() ? line.value.get<std::string>() : line.value.dump();
    if (!line.parameter->unit.empty() && line.parameter->unit != "ratio") value += " " + line.parameter->unit;
    out += line.path + " = " + value + "\n    " + line.parameter->doc + "\n    " + line.origin;
    if (!line.source.empty()) out += ": " + (line.assumed() ? "ASSUMED" + line.source.substr(7) : line.source);
    out += "\n";
  }
  return out;
}

Json explain_json(const Scenario& scenario, const Arm& arm, bool all) {
  Json out = Json::array();
  for (const Explanation& line : explain(scenario, arm)) {
    if (!all && line.is_default()) continue;
    out.push_back({{"path", line.path},
                   {"value", line.value},
                   {"unit", line.parameter->unit},
                   {"doc", line.parameter->doc},
                   {"origin", line.origin},
                   {"source", line.source},
                   {"assumed", line.assumed()}});
  }
  return out;
}

}  // namespace kvlift::experiment
