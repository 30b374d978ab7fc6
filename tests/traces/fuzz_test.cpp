// Sound lines with seeded damage: each is read or refused with its place, and both ways of reading agree.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/random.hpp"
#include "tests/traces/trace_text.hpp"
#include "traces/line_scan.hpp"

namespace kvlift {
namespace {

constexpr int kMutations = 100'000;

const std::vector<std::string> kSeeds = {
    R"({"timestamp": 5, "input_length": 150, "output_length": 7, "hash_ids": [3, 9]})",
    R"({"timestamp":5,"input_length":950,"output_length":7,"hash_ids":[0,1,2,3,4,5,6,7,8,9]})",
    R"({"hash_ids": [3, 9], "output_length": 7, "timestamp": 9223372036854, "input_length": 101})",
    R"({"timestamp": 27000, "input_length": 100, "output_length": 9223372036854775807, "hash_ids": [46]})"};
const std::vector<std::string> kPieces = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "-",
                                          ".",
                                          "e9",
                                          "0",
                                          "9",
                                          "null",
                                          "true",
                                          "\"hash_ids\"",
                                          "\"timestamp\"",
                                          "\n",
                                          "\r\n",
                                          " ",
                                          "\\u0000",
                                          "\xef\xbb\xbf",
                                          std::string(1, '\0'),
                                          "99999999999999999999",
                                          "\x1f\x8b",
                                          "\xff"};

std::string damaged(Random& random) {
  std::string line = kSeeds[random.below(kSeeds.size())];
  for (std::uint64_t count = 1 + random.below(3); count > 0 && !line.empty(); --count) {
    const std::size_t at = random.below(line.size());
    switch (random.below(8)) {
      case 0:
        line[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        line.erase(at, 1 + random.below(8));
        break;
      case 2:
        line.insert(at, kPieces[random.below(kPieces.size())]);
        break;
      case 3:
        line.insert(random.below(line.size()), line.substr(at, random.below(20)));
        break;
      case 4:
        line.insert(at, " ");
        break;
      default:
        if (line[at] >= '0' && line[at] <= '9') line[at] = static_cast<char>('0' + random.below(10));
    }
  }
  return line;
}

TEST(TraceFuzz, ADamagedLineIsReadOrRefusedWithItsPlace) {
  Random random(20'240'601);
  int sound = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string line = damaged(random);
    const std::string said = error_of(line_at(0) + "\n" + line);
    if (said.empty()) {
      ++sound;
      continue;
    }
    // A line break inside makes two lines of it.
    EXPECT_TRUE(said.starts_with("t:2: ") || said.starts_with("t:3: ") || said.starts_with("t:4: ") ||
                said.starts_with("t:5: "))
        << said;
    EXPECT_EQ(said.find_first_of("\n\r"), std::string::npos) << said;
    EXPECT_LT(said.size(), 400U);
  }
  EXPECT_GT(sound, kMutations / 20);
  EXPECT_LT(sound, 3 * kMutations / 4);
}

TEST(TraceFuzz, TheFastWayTakesNothingThatTheLibraryWouldReadOtherwise) {
  Random random(7);
  int taken = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string line = damaged(random);
    TraceRequest fast, slow;
    LineParser parser(kBlock);
    if (!scan_line(line, kBlock, fast)) continue;
    ++taken;
    ASSERT_TRUE(parser.parse_json(line, slow)) << line << ": " << parser.problem();
    ASSERT_EQ(fast, slow) << line;
  }
  EXPECT_GT(taken, kMutations / 20);
}

TEST(TraceFuzz, DamagedGzipIsReadOrRefused) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += line_at(i) + "\n";
  const std::string whole = gzip(text);
  Random random(11);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes = whole;
    bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    if (random.chance(1, 4)) bytes.resize(random.below(bytes.size()));
    const std::string said = error_of(bytes);
    if (said.empty()) continue;
    ++refused;
    EXPECT_TRUE(said.starts_with("t:")) << said;
  }
  EXPECT_GT(refused, 4'000);
}

}  // namespace
}  // namespace kvlift
