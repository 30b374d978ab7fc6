// One row per parameter of a scenario: where it stands in the file, which field it fills, what it may be, what it
// means and where its default comes from. Parsing, validation, `scenario schema` and `scenario explain` are
// all driven by this table and by nothing else.
//
// A path uses dots; "[]" stands for the index of an array, of which a path has at most one. The last word of
// a path ends with the unit, except for counts, ratios and choices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/settings.hpp"

namespace kvlift::experiment {

/// The field behind a parameter. A choice is an enum with an 8-bit underlying type.
using Slot = std::variant<bool*, std::int64_t*, double*, Duration*, Bytes*, Tokens*, std::uint8_t*, std::string*,
                          std::vector<Bytes>*>;

struct Parameter {
  std::string path;
  std::string unit;         ///< "ms", "bytes/s", "tokens", ...; empty for choices, texts and switches
  double scale = 1;         ///< durations: nanoseconds in one unit
  double min = 0, max = 0;  ///< in `unit`, both allowed unless min_excluded
  bool min_excluded = false;
  std::vector<std::string> choices;  ///< in the order of the enumerators
  std::string doc;
  std::string source;  ///< of the default; starts with "assumed" where nobody measured it
  Slot (*slot)(Settings&, std::size_t index) = nullptr;
};

/// All parameters, in the order of the file.
const std::vector<Parameter>& parameters();
/// The row of that path, indices written as in "cluster.hosts[3].nodes" or as "[]".
const Parameter* find_parameter(std::string_view path);
/// "cluster.hosts[3].nodes" -> "cluster.hosts[].nodes".
std::string pattern_of(std::string_view path);

/// Puts `value` into the field; otherwise says in a few words why it cannot be ("must be ...").
std::optional<std::string> assign(const Parameter& parameter, const Json& value, Slot slot);
/// The field as it would be written in a file.
Json value_of(const Parameter& parameter, Slot slot);
/// "a number of ms, at least 0": what may stand there.
std::string allowed(const Parameter& parameter);
/// "boolean", "integer", "number", "size", "choice", "text", "list of sizes".
std::string_view kind_of(const Parameter& parameter);

/// Such a text would break lines, or be a command to a terminal, wherever it is printed.
bool has_control_characters(std::string_view text);

/// Parts of the table, one per top-level object.
void add_cluster_parameters(std::vector<Parameter>& out);
void add_store_parameters(std::vector<Parameter>& out);
void add_policy_parameters(std::vector<Parameter>& out);
void add_engine_parameters(std::vector<Parameter>& out);
void add_workload_parameters(std::vector<Parameter>& out);

}  // namespace kvlift::experiment
