#include "tools/experiment/scenario.hpp"

#include <algorithm>
#include <filesystem>

#include "tools/experiment/nearest.hpp"
#include "tools/experiment/parameter.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBasesMax = 8;

/// A trace that a file names is beside the file, wherever the program was started.
void anchor_trace(Json& tree, const fs::path& folder) {
  if (node_at(tree, "workload.trace.path") == nullptr) return;
  Json& path = tree["workload"]["trace"]["path"];
  const auto text = path.get<std::string>();
  if (!text.empty() && fs::path(text).is_relative()) path = (folder / text).lexically_normal().string();
}

void anchor_traces(Json& document, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  anchor_trace(document, folder);
  if (const auto arms = document.find("arms"); arms != document.end()) {
    for (auto& arm : *arms) anchor_trace(arm, folder);
  }
}

/// `document` and what it is based on, the remotest base first. What is wrong in a base names the file that leads to
/// it.
std::vector<std::pair<std::string, Json>> layers_of(Json document, std::string file) {
  std::vector<std::pair<std::string, Json>> layers;
  std::string above;  // of the layer at hand
  try {
    while (true) {
      document = checked_document(std::move(document), file);
      anchor_traces(document, file);
      const auto base = document.find("based_on");
      const std::string base_name = base == document.end() ? "" : base->get<std::string>();
      layers.insert(layers.begin(), {file, std::move(document)});
      if (base_name.empty()) return layers;
      above = file;
      if (layers.size() > kBasesMax)
        throw UserError("more than " + std::to_string(kBasesMax) + " files deep, or in a circle");
      fs::path beside = fs::path(file).parent_path() / base_name;
      if (beside.extension() != ".json") beside += ".json";
      std::error_code ignored;
      file = fs::exists(beside, ignored) ? beside.string() : find_scenario_file(base_name);
      document = parse_json_file(file);
    }
  } catch (const UserError& error) {
    if (above.empty()) throw;
    throw UserError(above + ": based_on: " + error.what());
  }
}

Measured measured_of(const Json& tree) {
  Measured measured;
  if (const Json* source = node_at(tree, "measured.source")) measured.source = source->get<std::string>();
  const Json* phases = node_at(tree, "measured.phases");
  if (phases == nullptr) return measured;
  for (const auto& [phase, arms] : phases->items()) {
    for (const auto& [arm, figures] : arms.items()) {
      for (const auto& [name, value] : figures.items()) measured.figures[phase][arm][name] = value.get<double>();
    }
  }
  return measured;
}

std::vector<std::string> arm_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Arm& arm : scenario.arms) names.push_back(arm.name);
  return names;
}

void check_sources(const Scenario& scenario) {
  for (const auto& [path, source] : scenario.sources) {
    std::string inner = path;
    if (path.starts_with("arms.")) {
      const std::size_t dot = std::min(path.find('.', 5), path.size());
      const std::vector<std::string> names = arm_names(scenario);
      const bool known = std::find(names.begin(), names.end(), path.substr(5, dot - 5)) != names.end();
      inner = known ? path.substr(std::min(dot + 1, path.size())) : "?";
      if (inner.empty()) continue;
    }
    if (!is_known_path(inner) && node_at(scenario.tree, inner) == nullptr) {
      throw UserError(scenario.file + ": sources[\"" + path + "\"]: no such parameter");
    }
  }
}

/// An option that every arm overrides would change nothing and say nothing.
void check_set_has_effect(const Scenario& scenario, const std::vector<SetOption>& options) {
  for (const SetOption& set : options) {
    const std::string& path = set.path;
    if (path.starts_with("arms.") || path == "seeds") continue;
    const auto overridden = [&](const Arm& arm) {
      const bool other_preset = path.starts_with("policy") && node_at(arm.overrides, "policy.preset") != nullptr;
      return other_preset || node_at(arm.overrides, path) != nullptr;
    };
    if (std::all_of(scenario.arms.begin(), scenario.arms.end(), overridden)) {
      throw UserError(set.option + ": " + path + ": has no effect, every arm sets it; use arms." +
                      scenario.arms.front().name + "." + path);
    }
  }
}

void check_measured(const Scenario& scenario) {
  const std::vector<std::string> arms = arm_names(scenario);
  std::vector<std::string> phases;
  for (const Phase& phase : scenario.arms.front().settings.workload.phases) phases.push_back(phase.name);
  for (const auto& [phase, by_arm] : scenario.measured.figures) {
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) {
      throw UserError(scenario.file + ": measured.phases." + phase + ": no such phase" + did_you_mean(phase, phases));
    }
    for (const auto& [arm, figures] : by_arm) {
      if (std::find(arms.begin(), arms.end(), arm) == arms.end()) {
        throw UserError(scenario.file + ": measured.phases." + phase + "." + arm + ": no such arm" +
                        did_you_mean(arm, arms));
      }
    }
  }
}

void add_arms(Scenario& scenario) {
  Json base = Json::object();
  for (const std::string& section : settings_sections()) {
    if (scenario.tree.contains(section)) base[section] = scenario.tree[section];
  }
  Json arms = scenario.tree.value("arms", Json::object());
  if (arms.empty()) arms["base"] = Json::object();
  // A policy that every arm replaces is in no arm's settings, and must be sound all the same.
  if (std::all_of(arms.begin(), arms.end(), [](const Json& arm) { return node_at(arm, "policy.preset") != nullptr; }))
    check_policy(settings_of(base), scenario.file);
  for (const auto& [name, overrides] : arms.items()) {
    Json tree = base;
    merge(tree, overrides);
    scenario.arms.push_back({name, overrides, settings_of(tree)});
    const std::string where = arms.size() > 1 ? scenario.file + ": arm " + name : scenario.file;
    check_consistency(scenario.arms.back().settings, where);
  }
  // Arms are compared phase by phase.
  const auto phase_names = [](const Arm& arm) {
    std::vector<std::pair<std::string, bool>> names;
    for (const Phase& phase : arm.settings.workload.phases) names.emplace_back(phase.name, phase.measured);
    return names;
  };
  for (const Arm& arm : scenario.arms) {
    if (phase_names(arm) != phase_names(scenario.arms.front())) {
      throw UserError(scenario.file + ": arms." + arm.name + ".workload.phases: every arm must have the same phases");
    }
  }
}

}  // namespace

std::optional<double> Measured::find(const std::string& phase, const std::string& arm,
                                     const std::string& figure) const {
  const auto by_arm = figures.find(phase);
  if (by_arm == figures.end()) return std::nullopt;
  const auto by_figure = by_arm->second.find(arm);
  if (by_figure == by_arm->second.end()) return std::nullopt;
  const auto found = by_figure->second.find(figure);
  return found == by_figure->second.end() ? std::nullopt : std::optional(found->second);
}

const Arm& Scenario::arm(const std::string& arm_name) const {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const Arm& arm) { return arm.name == arm_name; });
  if (found == arms.end()) {
    throw UserError(file + ": no arm \"" + arm_name + "\"" + did_you_mean(arm_name, arm_names(*this)));
  }
  return *found;
}

void require_measured(const Scenario& scenario, const std::string& phase) {
  std::vector<std::string> with_requests;
  bool found = false;
  for (const Phase& candidate : scenario.arms.front().settings.workload.phases) {
    if (candidate.kind == Phase::Kind::pause) continue;
    with_requests.push_back(candidate.name);
    found = found || (phase.empty() ? candidate.measured : candidate.name == phase);
  }
  if (found) return;
  if (phase.empty()) throw UserError(scenario.file + ": workload.phases: none is measured");
  throw UserError("--phase: no phase \"" + phase + "\" with requests" + did_you_mean(phase, with_requests));
}

SetOption parse_set_option(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw UserError("--set: \"" + text + "\" is not path=value");
  const std::string value = text.substr(equals + 1);
  Json parsed = Json::parse(value, nullptr, false);
  if (parsed.is_discarded()) parsed = value;
  return {text.substr(0, equals), std::move(parsed)};
}

Scenario scenario_of(const std::string& text, const std::string& file, const std::vector<SetOption>& options) {
  Scenario scenario;
  scenario.file = file;
  scenario.layers = layers_of(parse_json(text, file), file);
  scenario.tree = Json::object();
  for (const auto& [layer_file, tree] : scenario.layers) {
    // Figures of another round must not shine through where this round has none.
    if (tree.contains("measured")) scenario.tree.erase("measured");
    merge(scenario.tree, tree);
  }
  for (const SetOption& option : options) {
    set_path(scenario.tree, option.path, option.value, option.option);
    scenario.set_paths.push_back(option.path);
  }
  scenario.name = scenario.tree.value("name", fs::path(file).stem().string());
  scenario.description = scenario.tree.value("description", "");
  scenario.seeds = scenario.tree.value("seeds", std::int64_t{1});
  if (const auto sources = scenario.tree.find("sources"); sources != scenario.tree.end()) {
    for (const auto& [path, source] : sources->items()) scenario.sources[path] = source.get<std::string>();
  }
  scenario.measured = measured_of(scenario.tree);
  add_arms(scenario);
  scenario.baseline = scenario.tree.value("baseline", scenario.arms.front().name);
  const std::vector<std::string> names = arm_names(scenario);
  if (std::find(names.begin(), names.end(), scenario.baseline) == names.end()) {
    throw UserError(file + ": baseline: no arm \"" + scenario.baseline + "\"" + did_you_mean(scenario.baseline, names));
  }
  check_sources(scenario);
  check_set_has_effect(scenario, options);
  check_measured(scenario);
  return scenario;
}

}  // namespace kvlift::experiment
