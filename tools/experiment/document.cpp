#include "tools/experiment/document.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "tools/experiment/nearest.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/parameter.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

/// Names below each interior node of the parameter tree; lists of objects end with "[]".
const std::map<std::string, std::vector<std::string>>& children() {
  static const std::map<std::string, std::vector<std::string>> tree = [] {
    std::map<std::string, std::vector<std::string>> nodes;
    for (const Parameter& parameter : parameters()) {
      std::string above;
      std::size_t start = 0;
      while (start <= parameter.path.size()) {
        const std::size_t dot = std::min(parameter.path.find('.', start), parameter.path.size());
        const std::string word = parameter.path.substr(start, dot - start);
        std::vector<std::string>& names = nodes[above];
        if (std::find(names.begin(), names.end(), word) == names.end()) names.push_back(word);
        above += (above.empty() ? "" : ".") + word;
        start = dot + 1;
      }
    }
    return nodes;
  }();
  return tree;
}

const std::vector<std::string>& top_fields() {
  static const std::vector<std::string> names{"name",     "description", "based_on", "cluster", "store",
                                              "policy",   "engine",      "workload", "seeds",   "arms",
                                              "baseline", "measured",    "sources"};
  return names;
}

const std::vector<std::string>& measured_fields() {
  static const std::vector<std::string> names{"ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms",
                                              "duration_s"};
  return names;
}

std::string joined(const std::string& above, const std::string& name) {
  return above.empty() ? name : above + "." + name;
}

/// The walk through one document; `file` opens every complaint.
class Checker {
 public:
  explicit Checker(const std::string& file) : file_(file) {}

  void document(const Json& tree) {
    if (!tree.is_object()) throw UserError(file_ + ": must be an object");
    for (const auto& [name, value] : tree.items()) {
      if (name == "name" || name == "based_on") {
        text(value, name);
        if (value == "") fail(name, "must not be empty");
        if (name == "name") plain_name(value.get<std::string>());
      } else if (name == "description" || name == "baseline") {
        text(value, name);
      } else if (name == "seeds") {
        const bool fits = value.is_number_integer() && value >= 1 && value <= kSeedsMax;
        if (!fits) fail(name, "must be an integer from 1 to " + std::to_string(kSeedsMax));
      } else if (name == "arms") {
        arms(value);
      } else if (name == "measured") {
        measured(value);
      } else if (name == "sources") {
        object(value, name);
        for (const auto& [path, source] : value.items()) text(source, "sources[\"" + path + "\"]");
      } else if (const auto& sections = settings_sections();
                 std::find(sections.begin(), sections.end(), name) != sections.end()) {
        settings(value, name, name);
      } else {
        unknown("", name, top_fields());
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& why) const {
    throw UserError(file_ + ": " + path + ": " + why);
  }
  [[noreturn]] void unknown(const std::string& above, const std::string& name,
                            const std::vector<std::string>& known) const {
    std::vector<std::string> names;
    for (const std::string& word : known)
      names.push_back(word.ends_with("[]") ? word.substr(0, word.size() - 2) : word);
    fail(joined(above, name), "unknown" + did_you_mean(name, names));
  }
  void text(const Json& value, const std::string& path) const {
    if (!value.is_string()) fail(path, "must be a text");
    if (has_control_characters(value.get<std::string>())) fail(path, "must be a text without control characters");
  }
  /// Results are filed under it.
  void plain_name(const std::string& name) const {
    const bool plain = name.find_first_of("/\\") == std::string::npos && !name.starts_with('.') && name.size() <= 200;
    if (!plain) fail("name", "must not hold \"/\" or \"\\\", start with \".\" or be longer than 200 bytes");
  }
  void object(const Json& value, const std::string& path) const {
    if (!value.is_object()) fail(path, "must be an object");
  }

  void settings(const Json& value, const std::string& path, const std::string& pattern) {
    const std::vector<std::string>& names = children().at(pattern);
    object(value, path);
    for (const auto& [name, child] : value.items()) {
      const std::string child_path = joined(path, name);
      if (const Parameter* parameter = find_parameter(pattern + "." + name)) {
        if (const auto wrong = assign(*parameter, child, parameter->slot(scratch_, 0))) fail(child_path, *wrong);
      } else if (children().contains(joined(pattern, name))) {
        settings(child, child_path, joined(pattern, name));
      } else if (std::find(names.begin(), names.end(), name + "[]") != names.end()) {
        if (!child.is_array()) fail(child_path, "must be a list of objects");
        if (child.empty()) fail(child_path, "must not be empty");
        for (std::size_t i = 0; i < child.size(); ++i) {
          settings(child[i], child_path + "[" + std::to_string(i) + "]", joined(pattern, name + "[]"));
        }
      } else {
        unknown(path, name, names);
      }
    }
  }

  void arms(const Json& value) {
    object(value, "arms");
    for (const auto& [arm, overrides] : value.items()) {
      const std::string path = "arms." + arm;
      const bool plain = !arm.empty() && std::all_of(arm.begin(), arm.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-';
      });
      if (!plain) fail(path, "the name of an arm is made of letters, digits, \"_\" and \"-\"");
      object(overrides, path);
      for (const auto& [section, child] : overrides.items()) {
        const auto& known = settings_sections();
        if (std::find(known.begin(), known.end(), section) == known.end()) unknown(path, section, known);
        settings(child, joined(path, section), section);
      }
    }
  }

  void measured(const Json& value) {
    object(value, "measured");
    for (const auto& [name, child] : value.items()) {
      if (name == "source") {
        text(child, "measured.source");
      } else if (name == "phases") {
        object(child, "measured.phases");
        for (const auto& [phase, by_arm] : child.items()) measured_phase(by_arm, "measured.phases." + phase);
      } else {
        unknown("measured", name, {"source", "phases"});
      }
    }
  }
  void measured_phase(const Json& by_arm, const std::string& path) {
    object(by_arm, path);
    for (const auto& [arm, figures] : by_arm.items()) {
      const std::string arm_path = joined(path, arm);
      object(figures, arm_path);
      for (const auto& [name, figure] : figures.items()) {
        const auto& known = measured_fields();
        if (std::find(known.begin(), known.end(), name) == known.end()) unknown(arm_path, name, known);
        if (!figure.is_number() || !(figure.get<double>() > 0))
          fail(joined(arm_path, name), "must be a number above 0");
      }
    }
  }

  const std::string& file_;
  Settings scratch_ = [] {
    Settings s;
    s.workload.phases.resize(1);
    return s;
  }();
};

/// "policy": "NAME" -> "policy": {"preset": "NAME"}
void lengthen_policy(Json& tree) {
  if (!tree.is_object()) return;
  const auto policy = tree.find("policy");
  if (policy != tree.end() && policy->is_string()) *policy = Json{{"preset", policy->get<std::string>()}};
}

/// Lists of objects, as many in one as in the other.
bool are_matching_lists(const Json& a, const Json& b) {
  const auto of_objects = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& e) { return e.is_object(); });
  };
  return of_objects(a) && of_objects(b) && a.size() == b.size();
}

struct Step {
  std::string name;
  std::optional<std::size_t> index;
};

/// "hosts[0].nodes" -> {hosts, 0}, {nodes}; empty when it is not a path.
std::vector<Step> steps_of(std::string_view path) {
  std::vector<Step> steps;
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    std::string_view word = path.substr(0, dot);
    Step step;
    if (const std::size_t open = word.find('['); open != std::string_view::npos) {
      std::size_t index = 0;
      const char* last = word.data() + word.size() - 1;
      const auto [end, error] = std::from_chars(word.data() + open + 1, last, index);
      if (error != std::errc() || end != last || *last != ']') return {};
      step.index = index;
      word = word.substr(0, open);
    }
    if (word.empty()) return {};
    step.name = word;
    steps.push_back(std::move(step));
    if (dot == path.size()) return steps;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

const std::vector<std::string>& settings_sections() { return children().at(""); }

bool is_known_path(std::string_view path) {
  const std::string pattern = pattern_of(path);
  return find_parameter(pattern) != nullptr || children().contains(pattern) || children().contains(pattern + "[]");
}

Json checked_document(Json document, const std::string& file) {
  lengthen_policy(document);
  if (document.is_object()) {
    if (const auto arms = document.find("arms"); arms != document.end() && arms->is_object()) {
      for (auto& arm : *arms) lengthen_policy(arm);
    }
  }
  Checker(file).document(document);
  return document;
}

void merge(Json& base, const Json& overlay) {
  if (are_matching_lists(base, overlay)) {
    for (std::size_t i = 0; i < base.size(); ++i) merge(base[i], overlay[i]);
    return;
  }
  if (!base.is_object() || !overlay.is_object()) {
    base = overlay;
    return;
  }
  for (const auto& [name, value] : overlay.items()) {
    const bool whole_policy = name == "policy" && value.is_object() && value.contains("preset");
    if (!base.contains(name) || whole_policy) {
      base[name] = value;
    } else {
      merge(base[name], value);
    }
  }
}

const Json* node_at(const Json& tree, std::string_view path) {
  const Json* node = &tree;
  const std::vector<Step> steps = steps_of(path);
  if (steps.empty()) return nullptr;
  for (const Step& step : steps) {
    if (!node->is_object()) return nullptr;
    const auto child = node->find(step.name);
    if (child == node->end()) return nullptr;
    node = &*child;
    if (!step.index) continue;
    if (!node->is_array() || *step.index >= node->size()) return nullptr;
    node = &(*node)[*step.index];
  }
  return node;
}

void set_path(Json& scenario, const std::string& path, Json value, const std::string& option) {
  const std::vector<Step> steps = steps_of(path);
  if (steps.empty())
    throw UserError(option + ": \"" + path + "\" is not a path such as engine.ranks or cluster.hosts[0].nodes");
  if (steps.front().name == "based_on")
    throw UserError(option + ": based_on: belongs in a file; give that scenario instead of this one");
  const bool in_arm = steps.size() > 2 && steps[0].name == "arms";
  Json overlay = std::move(value);
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (steps[i].index) {
      std::string above;
      for (std::size_t j = 0; j <= i; ++j) above += (j == 0 ? "" : ".") + steps[j].name;
      const Json* list = node_at(scenario, above);
      if (list == nullptr && in_arm) list = node_at(scenario, above.substr(above.find('.', 5) + 1));
      const std::size_t size = list != nullptr && list->is_array() ? list->size() : 0;
      if (*steps[i].index >= size) {
        throw UserError(option + ": " + path + ": " + above + " has " + std::to_string(size) + " elements");
      }
      Json copy = *list;
      merge(copy[*steps[i].index], overlay);
      overlay = std::move(copy);
    }
    Json object = Json::object();
    object[steps[i].name] = std::move(overlay);
    overlay = std::move(object);
  }
  merge(scenario, checked_document(std::move(overlay), option));
}

Settings settings_of(const Json& tree) {
  Settings settings;
  if (const Json* preset = node_at(tree, "policy.preset")) settings.policy_preset = preset->get<std::string>();
  settings.policy = policy_preset(settings.policy_preset).value();
  const auto sized = [&](const char* list, std::size_t otherwise) {
    const Json* node = node_at(tree, list);
    return node == nullptr ? otherwise : node->size();
  };
  settings.platform.hosts.resize(sized("cluster.hosts", 1));
  settings.workload.phases.resize(sized("workload.phases", 0));
  for (const Parameter& parameter : parameters()) {
    const std::size_t brackets = parameter.path.find("[]");
    const bool of_host = parameter.path.starts_with("cluster.hosts[]");
    const std::size_t copies = brackets == std::string::npos ? 1
                               : of_host                     ? settings.platform.hosts.size()
                                                             : settings.workload.phases.size();
    for (std::size_t i = 0; i < copies; ++i) {
      std::string path = parameter.path;
      if (brackets != std::string::npos) path.insert(brackets + 1, std::to_string(i));
      const Json* value = node_at(tree, path);
      if (value == nullptr) continue;
      if (const auto wrong = assign(parameter, *value, parameter.slot(settings, i)))
        throw UserError(path + ": " + *wrong);
    }
  }
  return settings;
}

}  // namespace kvlift::experiment
