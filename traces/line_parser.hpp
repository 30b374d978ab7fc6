// One line of a trace to a request, or to the one sentence that says what is wrong with it.
//
// A line is a JSON object with exactly the four fields of the format, each once, in any order. Numbers are JSON
// integers from 0 to 2^63 - 1; 1.0 and 1e3 are not integers here.
#pragma once

#include <string>
#include <string_view>

#include "traces/request.hpp"

namespace kvlift {

class LineParser {
 public:
  /// `block_tokens` is positive.
  explicit LineParser(Tokens block_tokens) : block_tokens_(block_tokens) {}

  /// True when `line` is a request; else problem() says "FIELD: what was expected", or what is not JSON.
  bool parse(std::string_view line, TraceRequest& request);
  /// The same by the JSON library alone, several times slower.
  bool parse_json(std::string_view line, TraceRequest& request);
  const std::string& problem() const { return problem_; }

 private:
  Tokens block_tokens_;
  std::string problem_;
};

}  // namespace kvlift
