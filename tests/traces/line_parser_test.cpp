// What a line may be, and what is said of one that it may not be.
#include "traces/line_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/line_scan.hpp"

namespace kvlift {
namespace {

TraceRequest parsed(const std::string& line) {
  LineParser parser(kBlock);
  TraceRequest request;
  EXPECT_TRUE(parser.parse(line, request)) << parser.problem();
  return request;
}

std::string problem(const std::string& line) {
  LineParser parser(kBlock);
  TraceRequest request;
  return parser.parse(line, request) ? "" : parser.problem();
}

const TraceRequest kRequest{Time{5'000'000}, {150}, {7}, {3, 9}};

TEST(LineParser, AllFourFieldsAreRead) {
  EXPECT_EQ(parsed(R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]})"), kRequest);
}

TEST(LineParser, FieldsMayStandInAnyOrderAndWithAnyBlanks) {
  EXPECT_EQ(parsed(R"({"hash_ids":[3,9],"output_length":7,"timestamp":5,"input_length":150})"), kRequest);
  EXPECT_EQ(parsed(" {\t\"timestamp\" :5 ,\"input_length\":  150, \"output_length\": 7, \"hash_ids\": [ 3,9 ] } "),
            kRequest);
  EXPECT_EQ(parsed(R"({"\u0074imestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]})"), kRequest);
}

TEST(LineParser, NoOutputIsARequestThatFillsTheCache) {
  EXPECT_EQ(parsed(R"({"timestamp": 0, "input_length": 1, "output_length": 0, "hash_ids": [0]})").output_length.value,
            0);
}

TEST(LineParser, TheLargestIntegersAreRead) {
  const TraceRequest request =
      parsed(R"({"timestamp": 9223372036854, "input_length": 100, "output_length": 9223372036854775807, )"
             R"("hash_ids": [9223372036854775807]})");
  EXPECT_EQ(request.arrival.ns, 9'223'372'036'854'000'000);
  EXPECT_EQ(request.output_length.value, INT64_MAX);
  EXPECT_EQ(request.hash_ids, (std::vector<std::uint64_t>{INT64_MAX}));
}

TEST(LineParser, AnOtherLineIsRefusedByNameOfTheFieldAndWhatWasExpected) {
  struct Row {
    std::string line, problem;
  };
  const std::string tail = R"("output_length": 7, "hash_ids": [3, 9]})";
  const Row rows[] = {
      // missing and unknown fields
      {R"({"input_length": 150, )" + tail, "timestamp: is missing"},
      {R"({"timestamp": 5, "output_length": 7, "hash_ids": [3, 9]})", "input_length: is missing"},
      {R"({"timestamp": 5, "input_length": 150, "hash_ids": [3, 9]})", "output_length: is missing"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7})", "hash_ids: is missing"},
      {"{}", "timestamp: is missing"},
      {R"({"time_stamp": 5, "input_length": 150, )" + tail,
       R"(unknown field "time_stamp", the nearest known name is "timestamp")"},
      {R"({"timestamp": 5, "inputlen": 150, )" + tail,
       R"(unknown field "inputlen", the nearest known name is "input_length")"},
      {R"({"timestamp": 5, "input_length": 150, "ids": [3, 9]})",
       R"(unknown field "ids", the nearest known name is "hash_ids")"},
      {R"({"timestamp": 5, "timestamp": 5, "input_length": 150, )" + tail, "timestamp: is given twice"},
      {R"({"timestamp": 5, "input_length": 150, "hash_ids": [3, 9], )" + tail, "hash_ids: is given twice"},
      // types
      {R"({"timestamp": "5", "input_length": 150, )" + tail,
       R"(timestamp: expected a non-negative integer, found the string "5")"},
      {R"({"timestamp": null, "input_length": 150, )" + tail, "timestamp: expected a non-negative integer, found null"},
      {R"({"timestamp": true, "input_length": 150, )" + tail, "timestamp: expected a non-negative integer, found true"},
      {R"({"timestamp": {}, "input_length": 150, )" + tail,
       "timestamp: expected a non-negative integer, found an object"},
      {R"({"timestamp": [5], "input_length": 150, )" + tail,
       "timestamp: expected a non-negative integer, found a list"},
      {R"({"timestamp": 5, "input_length": 150.5, )" + tail,
       "input_length: expected a non-negative integer, found 150.5"},
      {R"({"timestamp": 5, "input_length": 1e3, )" + tail, "input_length: expected a non-negative integer, found 1e3"},
      {R"({"timestamp": -5, "input_length": 150, )" + tail, "timestamp: expected a non-negative integer, found -5"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": 3})",
       "hash_ids: expected a list of non-negative integers, found 3"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": "3"})",
       R"(hash_ids: expected a list of non-negative integers, found the string "3")"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, "9"]})",
       R"(hash_ids: id 1 of the list: expected a non-negative integer, found the string "9")"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [-3, 9]})",
       "hash_ids: id 0 of the list: expected a non-negative integer, found -3"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [[3], 9]})",
       "hash_ids: id 0 of the list: expected a non-negative integer, found a list"},
      // ranges
      {R"({"timestamp": 5, "input_length": 0, "output_length": 7, "hash_ids": []})",
       "input_length: expected at least 1 token, found 0"},
      {R"({"timestamp": 9223372036855, "input_length": 150, )" + tail,
       "timestamp: expected milliseconds since the start of the trace, at most 9223372036854 (292 years), "
       "found 9223372036855"},
      {R"({"timestamp": 5, "input_length": 9223372036854775808, )" + tail,
       "input_length: expected at most 9223372036854775807 (2^63 - 1), found 9223372036854775808"},
      {R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 99999999999999999999999]})",
       "hash_ids: expected at most 9223372036854775807 (2^63 - 1), found 99999999999999999999999"},
      {R"({"timestamp": 5, "input_length": 201, )" + tail,
       "hash_ids: expected 3 ids, because input_length is 201 and a block has 100 tokens, found 2"},
      {R"({"timestamp": 5, "input_length": 100, )" + tail,
       "hash_ids: expected 1 ids, because input_length is 100 and a block has 100 tokens, found 2"},
      // not an object
      {"5", "expected an object with timestamp, input_length, output_length and hash_ids, found 5"},
      {"[]", "expected an object with timestamp, input_length, output_length and hash_ids, found a list"},
      {"\"x\"", "expected an object with timestamp, input_length, output_length and hash_ids, found the string \"x\""},
  };
  for (const Row& row : rows) EXPECT_EQ(problem(row.line), row.problem) << row.line;
}

TEST(LineParser, WhatIsNotJsonIsSaidWithItsPlace) {
  EXPECT_TRUE(problem("{\"timestamp\": 5,").starts_with("not JSON at byte 17: ")) << problem("{\"timestamp\": 5,");
  EXPECT_TRUE(problem(line_at(0) + "x").starts_with("not JSON at byte ")) << problem(line_at(0) + "x");
  EXPECT_TRUE(problem(line_at(0) + line_at(1)).starts_with("not JSON at byte "));
  EXPECT_TRUE(problem("{\"timestamp\": 05}").starts_with("not JSON at byte "));
  EXPECT_TRUE(problem("\xff\xfe").starts_with("not JSON at byte "));
  EXPECT_TRUE(problem(std::string("{\0}", 3)).starts_with("not JSON at byte "));
}

TEST(LineParser, AByteOrderMarkIsNamed) {
  EXPECT_EQ(problem("\xef\xbb\xbf" + line_at(0)),
            "the line starts with a byte order mark; a trace is UTF-8 without one");
}

TEST(LineParser, AProblemIsOneShortLineWhateverTheFileHolds) {
  const std::string long_text(100'000, 'a');
  for (const std::string& line : {"{\"" + long_text + "\": 1}", "{\"timestamp\": \"" + long_text + "\"}",
                                  "{\"timestamp\": " + std::string(100'000, '7') + "}", std::string(100'000, '['),
                                  std::string("{\"a\\nb\": 1}"), "{\"timestamp\": \"\\n\\u0007\"}" + long_text}) {
    const std::string said = problem(line);
    EXPECT_FALSE(said.empty());
    EXPECT_LT(said.size(), 400U);
    EXPECT_EQ(said.find_first_of("\n\r\a"), std::string::npos) << said;
  }
}

TEST(LineScan, TakesTheUsualFormAndLeavesTheRest) {
  TraceRequest request;
  EXPECT_TRUE(scan_line(line_at(5), kBlock, request));
  EXPECT_TRUE(scan_line(R"({"timestamp":5,"input_length":150,"output_length":7,"hash_ids":[3,9]})", kBlock, request));
  EXPECT_EQ(request, kRequest);
  for (const char* line :
       {"", "{", R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]} )",
        R"({"timestamp": 05, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]})",
        R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 9,]})",
        R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3]})",
        R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": []})",
        R"({"timestamp": 5, "input_length": 150, "output_length": 1000000000000000000, "hash_ids": [3, 9]})",
        R"({"timestamp": 5.0, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]})"}) {
    EXPECT_FALSE(scan_line(line, kBlock, request)) << line;
  }
}

}  // namespace
}  // namespace kvlift
