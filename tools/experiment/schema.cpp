#include "tools/experiment/schema.hpp"

#include <array>
#include <utility>

#include "tools/experiment/document.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/parameter.hpp"
#include "tools/experiment/text_table.hpp"

namespace kvlift::experiment {
namespace {

/// Fields about the experiment; document.cpp checks them.
constexpr std::array<std::pair<const char*, const char*>, 8> kTopFields{{
    {"name", "name in results; by default the file's"},
    {"description", "one line"},
    {"based_on", "a scenario, beside this file or among the shipped ones, over which this one is laid"},
    {"seeds", "runs of each arm, with seeds 1 to N; 1 by default"},
    {"arms", "{NAME: overrides of cluster, store, policy, engine, workload}, in the order shown"},
    {"baseline", "the arm that the others are compared with; the first by default"},
    {"measured",
     "{\"source\": text, \"phases\": {PHASE: {ARM: {ttft_mean_ms, ttft_p50_ms, ttft_p90_ms, ttft_p99_ms, "
     "duration_s}}}}: figures of a real run, shown beside the simulated; replaces those of based_on"},
    {"sources", "{PATH: text}: where the value at a path, or below it, comes from; \"assumed: ...\" marks a guess"},
}};

Json default_of(const Parameter& parameter) {
  Settings settings;
  settings.workload.phases.resize(1);
  return value_of(parameter, parameter.slot(settings, 0));
}

std::string default_text(const Parameter& parameter) {
  const Json value = default_of(parameter);
  if (value.is_string()) return value.get<std::string>().empty() ? "-" : value.get<std::string>();
  return value.empty() ? "-" : value.dump();
}

std::string range_text(const Parameter& parameter) {
  if (!parameter.choices.empty() || parameter.max == parameter.min) return allowed(parameter);
  if (parameter.max >= 9.0e15) return (parameter.min_excluded ? "> " : ">= ") + number_text(parameter.min);
  return (parameter.min_excluded ? "above " : "") + number_text(parameter.min) + " to " + number_text(parameter.max);
}

TextTable table_of(const std::string& section, bool code) {
  const std::string tick = code ? "`" : "";
  TextTable table({"field", "unit", "default", "allowed", "meaning", "source of the default"});
  for (const Parameter& parameter : parameters()) {
    if (!section.empty() && !parameter.path.starts_with(section + ".")) continue;
    table.add({tick + parameter.path + tick, parameter.unit, default_text(parameter), range_text(parameter),
               parameter.doc, parameter.source});
  }
  return table;
}

Json parameter_schema(const Parameter& parameter) {
  Json out;
  const std::string_view kind = kind_of(parameter);
  const Json size = {{"anyOf", {{{"type", "integer"}}, {{"type", "string"}}}}};
  if (kind == "boolean" || kind == "integer" || kind == "number") {
    out["type"] = kind;
  } else if (kind == "size") {
    out = size;
  } else if (kind == "list of sizes") {
    out = {{"type", "array"}, {"items", size}};
  } else {
    out["type"] = "string";
  }
  if (!parameter.choices.empty()) out["enum"] = parameter.choices;
  if (kind == "integer" || kind == "number") {
    out[parameter.min_excluded ? "exclusiveMinimum" : "minimum"] = parameter.min;
    if (parameter.max < 9.0e15) out["maximum"] = parameter.max;
  }
  out["default"] = default_of(parameter);
  out["description"] =
      parameter.doc + (parameter.unit.empty() ? "" : " [" + parameter.unit + "]") + "; default: " + parameter.source;
  return out;
}

/// The schema object at a parameter's place, made where it is missing.
Json& place(Json& root, const std::string& path) {
  Json* node = &root;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    std::string word = path.substr(start, dot - start);
    const bool list = word.ends_with("[]");
    if (list) word.resize(word.size() - 2);
    if (!node->contains("type")) *node = {{"type", "object"}, {"additionalProperties", false}};
    node = &(*node)["properties"][word];
    if (list) {
      (*node)["type"] = "array";
      node = &(*node)["items"];
    }
    start = dot + 1;
  }
  return *node;
}

}  // namespace

std::string schema_table() {
  TextTable top({"field", "meaning"});
  for (const auto& [name, doc] : kTopFields) top.add({name, doc});
  return top.text("") + "\n" + table_of("", false).text("");
}

std::string schema_markdown() {
  TextTable top({"field", "meaning"});
  for (const auto& [name, doc] : kTopFields) top.add({"`" + std::string(name) + "`", doc});
  std::string out = top.markdown();
  for (const std::string& section : settings_sections()) {
    out += "\n### " + section + "\n\n" + table_of(section, true).markdown();
  }
  return out;
}

Json schema_json() {
  Json overrides;
  for (const Parameter& parameter : parameters()) place(overrides, parameter.path) = parameter_schema(parameter);
  Json& policy = overrides["properties"]["policy"];
  policy = {{"anyOf", {{{"type", "string"}, {"enum", find_parameter("policy.preset")->choices}}, policy}}};
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "kvlift scenario"}};
  out.update(overrides);
  for (const auto& [name, doc] : kTopFields) out["properties"][name] = {{"description", doc}};
  for (const char* text : {"name", "description", "based_on", "baseline"}) out["properties"][text]["type"] = "string";
  out["properties"]["seeds"].update({{"type", "integer"}, {"minimum", 1}, {"maximum", kSeedsMax}});
  out["properties"]["arms"].update({{"type", "object"}, {"additionalProperties", overrides}});
  out["properties"]["measured"]["type"] = "object";
  out["properties"]["sources"].update({{"type", "object"}, {"additionalProperties", {{"type", "string"}}}});
  return out;
}

}  // namespace kvlift::experiment
