// nlohmann's SAX parser splits the line; Fields takes what it finds. Nothing nests deeper than the list of ids, because
// the first value of another kind ends the parse.
#include "traces/line_parser.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "traces/line_scan.hpp"

namespace kvlift {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kFields = {"timestamp", "input_length", "output_length", "hash_ids"};
enum Field : std::size_t { kTimestamp, kInputLength, kOutputLength, kHashIds, kNoField };

constexpr std::uint64_t kIntegerMax = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kQuotedMax = 40;  ///< of what a message repeats from the file

/// In quotes, cut to a length that fits a line; what is not printable ASCII becomes '?'.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kQuotedMax)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kQuotedMax ? "...\"" : "\"");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string_view nearest_field(std::string_view name) {
  name = name.substr(0, kQuotedMax);
  return *std::min_element(kFields.begin(), kFields.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

class Fields {
 public:
  explicit Fields(TraceRequest& request) : request_(request) { request_.hash_ids.clear(); }

  std::string problem;

  /// All four are there, and as many ids as the prompt has blocks.
  bool complete(Tokens block_tokens) {
    for (std::size_t field = 0; field < kFields.size(); ++field) {
      if (!seen_[field]) return fail(static_cast<Field>(field), "is missing");
    }
    const std::int64_t blocks = blocks_of(request_.input_length, block_tokens);
    const auto ids = static_cast<std::int64_t>(request_.hash_ids.size());
    if (ids == blocks) return true;
    return fail(kHashIds, "expected " + std::to_string(blocks) + " ids, because input_length is " +
                              std::to_string(request_.input_length.value) + " and a block has " +
                              std::to_string(block_tokens.value) + " tokens, found " + std::to_string(ids));
  }

  // What the parser calls; false ends the parse.
  bool key(std::string& name) {
    field_ = static_cast<Field>(std::find(kFields.begin(), kFields.end(), name) - kFields.begin());
    if (field_ == kNoField) {
      problem = "unknown field " + in_quotes(name) + ", the nearest known name is \"" +
                std::string(nearest_field(name)) + "\"";
      return false;
    }
    if (std::exchange(seen_[field_], true)) return fail(field_, "is given twice");
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (value > kIntegerMax) return too_large(std::to_string(value));
    return integer(static_cast<std::int64_t>(value));
  }
  bool number_integer(std::int64_t value) { return unexpected(std::to_string(value)); }  // only for negative ones
  bool number_float(double, const std::string& text) {
    if (text.find_first_not_of("0123456789") == std::string::npos) return too_large(text);
    return unexpected(text.substr(0, kQuotedMax));
  }
  bool string(std::string& value) { return unexpected("the string " + in_quotes(value)); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool null() { return unexpected("null"); }
  bool binary(std::vector<std::uint8_t>&) { return unexpected("binary data"); }  // JSON text has none
  bool start_object(std::size_t) { return std::exchange(in_object_, true) ? unexpected("an object") : true; }
  bool end_object() { return true; }
  bool start_array(std::size_t) {
    if (!in_object_ || field_ != kHashIds || in_ids_) return unexpected("a list");
    return in_ids_ = true;
  }
  bool end_array() {
    in_ids_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: what": the line is always 1.
    std::string_view what = error.what();
    const std::size_t place = what.find(": ");
    if (place != std::string_view::npos) what.remove_prefix(place + 2);
    problem = "not JSON at byte " + std::to_string(position) + ": ";
    for (const char c : what.substr(0, 200)) problem += c >= ' ' && c <= '~' ? c : '?';
    return false;
  }

 private:
  bool fail(Field field, const std::string& what) {
    problem = std::string(kFields[field]) + ": " + what;
    return false;
  }
  bool too_large(const std::string& number) {
    if (!in_object_) return unexpected("a number");
    return fail(field_, "expected at most " + std::to_string(kIntegerMax) + " (2^63 - 1), found " +
                            number.substr(0, kQuotedMax));
  }
  bool unexpected(const std::string& found) {
    if (!in_object_) {
      problem = "expected an object with timestamp, input_length, output_length and hash_ids, found " + found;
      return false;
    }
    if (in_ids_) {
      return fail(field_, "id " + std::to_string(request_.hash_ids.size()) +
                              " of the list: expected a non-negative integer, found " + found);
    }
    return fail(field_, (field_ == kHashIds ? "expected a list of non-negative integers, found "
                                            : "expected a non-negative integer, found ") +
                            found);
  }
  bool integer(std::int64_t value) {
    if (in_ids_) {
      request_.hash_ids.push_back(static_cast<std::uint64_t>(value));
      return true;
    }
    if (!in_object_ || field_ == kHashIds) return unexpected(std::to_string(value));
    switch (field_) {
      case kTimestamp:
        if (value > kTimestampMaxMs) {
          return fail(field_, "expected milliseconds since the start of the trace, at most " +
                                  std::to_string(kTimestampMaxMs) + " (292 years), found " + std::to_string(value));
        }
        request_.arrival = Time{} + milliseconds(value);
        return true;
      case kInputLength:
        if (value == 0) return fail(field_, "expected at least 1 token, found 0");
        request_.input_length = Tokens{value};
        return true;
      case kOutputLength:
        request_.output_length = Tokens{value};
        return true;
      case kHashIds:
      case kNoField:
        break;
    }
    return unexpected(std::to_string(value));
  }

  TraceRequest& request_;
  Field field_ = kNoField;
  std::array<bool, 4> seen_{};
  bool in_object_ = false, in_ids_ = false;
};

}  // namespace

bool LineParser::parse(std::string_view line, TraceRequest& request) {
  return scan_line(line, block_tokens_, request) || parse_json(line, request);
}

bool LineParser::parse_json(std::string_view line, TraceRequest& request) {
  if (line.starts_with("\xef\xbb\xbf")) {
    problem_ = "the line starts with a byte order mark; a trace is UTF-8 without one";
    return false;
  }
  Fields fields(request);
  if (Json::sax_parse(line.begin(), line.end(), &fields) && fields.complete(block_tokens_)) return true;
  problem_ = std::move(fields.problem);
  return false;
}

}  // namespace kvlift
