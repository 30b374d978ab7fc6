#include "tools/experiment/parameter.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>

#include "tools/experiment/byte_size.hpp"
#include "tools/experiment/nearest.hpp"
#include "tools/experiment/number_text.hpp"

namespace kvlift::experiment {
namespace {

constexpr double kUnbounded = 9.0e15;  ///< row::kHuge

std::string kind_seen(const Json& value) {
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "the text \"" + value.get<std::string>() + "\"";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return "null";
}

std::string must_be(const Parameter& parameter, const Json& value) {
  return "must be " + allowed(parameter) + ", not " + kind_seen(value);
}

/// The number in range, or why not.
std::optional<std::string> check_range(const Parameter& parameter, double number) {
  const bool low = parameter.min_excluded ? !(number > parameter.min) : !(number >= parameter.min);
  if (low || !(number <= parameter.max)) {
    // `allowed` is silent about a bound that stands for none.
    const std::string most = !(number <= parameter.max) && parameter.max >= kUnbounded ? " and at most 9e+15" : "";
    return "must be " + allowed(parameter) + most + ", not " + number_text(number);
  }
  return std::nullopt;
}

std::optional<std::string> read_number(const Parameter& parameter, const Json& value, bool integer, double& out) {
  if (!value.is_number()) return must_be(parameter, value);
  out = value.get<double>();
  if (integer && std::nearbyint(out) != out) return "must be " + allowed(parameter) + ", not " + number_text(out);
  return check_range(parameter, out);
}

std::optional<std::string> read_bytes(const Parameter& parameter, const Json& value, Bytes& out) {
  double number = 0;
  if (value.is_string()) {
    const std::optional<double> size = parse_byte_size(value.get<std::string>());
    if (!size) return must_be(parameter, value);
    number = *size;
    if (const auto wrong = check_range(parameter, number)) return wrong;
  } else if (const auto wrong = read_number(parameter, value, true, number)) {
    return wrong;
  }
  out = {std::llround(number)};
  return std::nullopt;
}

struct Assign {
  const Parameter& parameter;
  const Json& value;

  std::optional<std::string> operator()(bool* field) const {
    if (!value.is_boolean()) return must_be(parameter, value);
    *field = value.get<bool>();
    return std::nullopt;
  }
  std::optional<std::string> operator()(std::int64_t* field) const {
    double number = 0;
    if (const auto wrong = read_number(parameter, value, true, number)) return wrong;
    *field = std::llround(number);
    return std::nullopt;
  }
  std::optional<std::string> operator()(double* field) const {
    double number = 0;
    if (const auto wrong = read_number(parameter, value, false, number)) return wrong;
    *field = number;
    return std::nullopt;
  }
  std::optional<std::string> operator()(Duration* field) const {
    double number = 0;
    if (const auto wrong = read_number(parameter, value, false, number)) return wrong;
    *field = {std::llround(number * parameter.scale)};
    return std::nullopt;
  }
  std::optional<std::string> operator()(Tokens* field) const { return (*this)(&field->value); }
  std::optional<std::string> operator()(Bytes* field) const { return read_bytes(parameter, value, *field); }
  std::optional<std::string> operator()(std::uint8_t* field) const {
    if (!value.is_string()) return must_be(parameter, value);
    const auto name = value.get<std::string>();
    const auto found = std::find(parameter.choices.begin(), parameter.choices.end(), name);
    if (found == parameter.choices.end()) return must_be(parameter, value) + did_you_mean(name, parameter.choices);
    *field = static_cast<std::uint8_t>(found - parameter.choices.begin());
    return std::nullopt;
  }
  std::optional<std::string> operator()(std::string* field) const {
    if (!value.is_string()) return must_be(parameter, value);
    const auto text = value.get<std::string>();
    if (has_control_characters(text)) return "must be a text without control characters";
    const bool known = std::find(parameter.choices.begin(), parameter.choices.end(), text) != parameter.choices.end();
    if (!parameter.choices.empty() && !known) return must_be(parameter, value) + did_you_mean(text, parameter.choices);
    *field = text;
    return std::nullopt;
  }
  std::optional<std::string> operator()(std::vector<Bytes>* field) const {
    if (!value.is_array()) return must_be(parameter, value);
    std::vector<Bytes> sizes(value.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (const auto wrong = read_bytes(parameter, value[i], sizes[i])) return wrong;
    }
    *field = std::move(sizes);
    return std::nullopt;
  }
};

/// An integer where the number is one: 30 and not 30.0.
Json plain_number(double number) {
  if (std::nearbyint(number) == number && std::fabs(number) < 9.0e15) return std::llround(number);
  return number;
}

struct ValueOf {
  const Parameter& parameter;

  Json operator()(const bool* field) const { return *field; }
  Json operator()(const std::int64_t* field) const { return *field; }
  Json operator()(const double* field) const { return plain_number(*field); }
  Json operator()(const Duration* field) const {
    return plain_number(static_cast<double>(field->ns) / parameter.scale);
  }
  Json operator()(const Bytes* field) const { return field->value; }
  Json operator()(const Tokens* field) const { return field->value; }
  Json operator()(const std::uint8_t* field) const { return parameter.choices.at(*field); }
  Json operator()(const std::string* field) const { return *field; }
  Json operator()(const std::vector<Bytes>* field) const {
    Json list = Json::array();
    for (const Bytes size : *field) list.push_back(size.value);
    return list;
  }
};

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

}  // namespace

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

const std::vector<Parameter>& parameters() {
  static const std::vector<Parameter> table = [] {
    std::vector<Parameter> rows;
    add_cluster_parameters(rows);
    add_store_parameters(rows);
    add_policy_parameters(rows);
    add_engine_parameters(rows);
    add_workload_parameters(rows);
    return rows;
  }();
  return table;
}

std::string pattern_of(std::string_view path) {
  std::string pattern;
  bool in_index = false;
  for (const char c : path) {
    if (c == ']') in_index = false;
    if (!in_index) pattern += c;
    if (c == '[') in_index = true;
  }
  return pattern;
}

const Parameter* find_parameter(std::string_view path) {
  static const std::map<std::string, const Parameter*> by_path = [] {
    std::map<std::string, const Parameter*> index;
    for (const Parameter& parameter : parameters()) index.emplace(parameter.path, &parameter);
    return index;
  }();
  const auto found = by_path.find(pattern_of(path));
  return found == by_path.end() ? nullptr : found->second;
}

std::optional<std::string> assign(const Parameter& parameter, const Json& value, Slot slot) {
  return std::visit(Assign{parameter, value}, slot);
}

Json value_of(const Parameter& parameter, Slot slot) { return std::visit(ValueOf{parameter}, slot); }

std::string_view kind_of(const Parameter& parameter) {
  static Settings scratch = [] {
    Settings s;
    s.workload.phases.resize(1);
    return s;
  }();
  struct Kind {
    std::string_view operator()(bool*) const { return "boolean"; }
    std::string_view operator()(std::int64_t*) const { return "integer"; }
    std::string_view operator()(double*) const { return "number"; }
    std::string_view operator()(Duration*) const { return "number"; }
    std::string_view operator()(Bytes*) const { return "size"; }
    std::string_view operator()(Tokens*) const { return "integer"; }
    std::string_view operator()(std::uint8_t*) const { return "choice"; }
    std::string_view operator()(std::string*) const { return "text"; }
    std::string_view operator()(std::vector<Bytes>*) const { return "list of sizes"; }
  };
  const std::string_view kind = std::visit(Kind{}, parameter.slot(scratch, 0));
  return kind == "text" && !parameter.choices.empty() ? "choice" : kind;
}

std::string allowed(const Parameter& parameter) {
  const std::string_view kind = kind_of(parameter);
  if (kind == "boolean") return "true or false";
  if (kind == "text") return "a text";
  if (kind == "choice") return listed(parameter.choices);
  std::string text = kind == "list of sizes" ? "a list of sizes in bytes"
                     : kind == "size"        ? "a size in bytes (a number, or a text such as \"256MiB\")"
                     : kind == "integer"     ? "an integer"
                                             : "a number";
  const bool sized = kind == "size" || kind == "list of sizes";
  if (!sized && !parameter.unit.empty() && parameter.unit != "ratio" && parameter.unit != "bytes/s")
    text += " of " + parameter.unit;
  if (parameter.max < 9.0e15) {
    const char* from = parameter.min_excluded ? " above " : " from ";
    return text + from + number_text(parameter.min) + (parameter.min_excluded ? " and at most " : " to ") +
           number_text(parameter.max);
  }
  return text + (parameter.min_excluded ? " above " : ", at least ") + number_text(parameter.min);
}

}  // namespace kvlift::experiment
