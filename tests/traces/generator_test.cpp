// Made-up traces: their shape, their sameness, their limits.
#include "traces/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/info.hpp"
#include "traces/writer.hpp"

namespace kvlift {
namespace {

using Arrivals = GeneratorSettings::Arrivals;

std::vector<TraceRequest> generate(const GeneratorSettings& settings) {
  Generator generator(settings);
  std::vector<TraceRequest> requests;
  for (TraceRequest request; generator.next(request);) requests.push_back(request);
  return requests;
}

std::string text_of(const GeneratorSettings& settings) {
  std::string text;
  for (const TraceRequest& request : generate(settings)) append_line(request, text);
  return text;
}

TraceInfo info_of(const GeneratorSettings& settings) {
  Generator generator(settings);
  return describe([&](TraceRequest& request) { return generator.next(request); }, settings.block_tokens);
}

GeneratorSettings sized(std::int64_t requests) {
  GeneratorSettings settings;
  settings.requests = requests;
  return settings;
}

/// traces/README.md has the command.
GeneratorSettings small_trace() {
  GeneratorSettings settings;
  settings.requests = 200;
  settings.rate_per_s = 0.25;
  settings.turns_mean = 3;
  settings.think_mean_s = 60;
  settings.first_prompt.mean = 6'000;
  settings.first_prompt.max = {16'384};
  settings.prompt_max = {32'768};
  return settings;
}

TEST(Generator, ReproducesTheShippedSmallTraceByteForByte) {
  const std::string shipped = bytes_of(std::string(KVLIFT_SOURCE_DIR) + "/traces/small.jsonl");
  ASSERT_FALSE(shipped.empty());
  EXPECT_LT(shipped.size(), 200U << 10);
  EXPECT_TRUE(text_of(small_trace()) == shipped);
}

TEST(Generator, OneSeedOneTrace) {
  GeneratorSettings settings = sized(500);
  EXPECT_EQ(text_of(settings), text_of(settings));
  settings.seed = 2;
  EXPECT_NE(text_of(settings), text_of(sized(500)));
}

TEST(Generator, WhatItMakesTheReaderTakes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    GeneratorSettings settings = small_trace();
    settings.seed = seed;
    settings.arrivals = static_cast<Arrivals>(seed % 3);
    EXPECT_EQ(read_all(text_of(settings), settings.block_tokens), generate(settings));
  }
}

TEST(Generator, IdsAreNumberedInOrderOfFirstAppearance) {
  std::uint64_t next = 0;
  for (const TraceRequest& request : generate(sized(2'000))) {
    for (const std::uint64_t id : request.hash_ids) {
      ASSERT_LE(id, next);
      next += id == next ? 1 : 0;
    }
  }
}

TEST(Generator, IdsFormATreeAndHitsAreAPrefix) {
  EXPECT_EQ(info_of(sized(5'000)).misplaced_ids, 0);
  std::set<std::uint64_t> seen;
  for (const TraceRequest& request : generate(sized(2'000))) {
    bool hit = true;
    for (const std::uint64_t id : request.hash_ids) {
      const bool known = !seen.insert(id).second;
      ASSERT_TRUE(hit || !known);
      hit = known;
    }
  }
}

TEST(Generator, EveryPromptStartsWithTheSharedBlocks) {
  GeneratorSettings settings = sized(300);
  settings.shared_blocks = 3;
  settings.first_prompt.min = {2'000};
  for (const TraceRequest& request : generate(settings)) {
    ASSERT_GT(request.hash_ids.size(), 3U);
    EXPECT_TRUE(std::equal(request.hash_ids.begin(), request.hash_ids.begin() + 3, std::vector{0, 1, 2}.begin()));
  }
  settings.shared_blocks = 0;
  const auto requests = generate(settings);
  EXPECT_TRUE(std::any_of(requests.begin(), requests.end(), [](const auto& r) { return r.hash_ids.front() != 0; }));
}

TEST(Generator, ATurnIsTheConversationSoFarAndSomeMore) {
  // The last request by its last full block: what a next turn is found by.
  std::map<std::uint64_t, TraceRequest> by_full_block;
  int turns = 0;
  const GeneratorSettings settings = sized(3'000);
  for (const TraceRequest& request : generate(settings)) {
    for (std::size_t i = request.hash_ids.size(); i-- > 1;) {
      const auto found = by_full_block.find(request.hash_ids[i]);
      if (found == by_full_block.end()) continue;
      const TraceRequest& before = found->second;
      ++turns;
      EXPECT_GT(request.input_length, before.input_length + before.output_length);
      EXPECT_GT(request.arrival, before.arrival);
      EXPECT_EQ(i + 1, static_cast<std::size_t>(before.input_length.value / 512));
      break;
    }
    const auto full = static_cast<std::size_t>(request.input_length.value / 512);
    if (full > 1) by_full_block[request.hash_ids[full - 1]] = request;
  }
  EXPECT_GT(turns, 500);
}

TEST(Generator, ConversationsOfOneTurnShareTheSystemPromptOnly) {
  GeneratorSettings settings = sized(1'000);
  settings.turns_mean = 1;
  EXPECT_EQ(info_of(settings).hits, 999);
}

TEST(Generator, NoRoomForConversationsMeansNoSecondTurns) {
  GeneratorSettings settings = sized(1'000);
  settings.conversations_max = 0;
  EXPECT_EQ(info_of(settings).hits, 999);
  settings.conversations_max = 50;
  const std::int64_t some = info_of(settings).hits;
  settings.conversations_max = 4'096;
  EXPECT_GT(some, 999);
  EXPECT_LT(some, info_of(settings).hits);
}

TEST(Generator, AlwaysANewConversationMeansNoSecondTurns) {
  GeneratorSettings settings = sized(1'000);
  settings.new_conversation_probability = 1;
  EXPECT_EQ(info_of(settings).hits, 999);
}

TEST(Generator, LengthsStayInTheirBounds) {
  GeneratorSettings settings = sized(5'000);
  settings.first_prompt.max = settings.prompt_max = {20'000};
  settings.output = {.mean = 300, .sigma = 2, .min = {0}, .max = {400}};
  const TraceInfo info = info_of(settings);
  EXPECT_GE(info.input_tokens.min, 891);
  EXPECT_LE(info.input_tokens.max, 20'000);
  EXPECT_LE(info.output_tokens.max, 400);
}

TEST(Generator, ASmallerTraceIsTheStartOfALargerOne) {
  GeneratorSettings settings = sized(800);
  const std::string whole = text_of(settings);
  for (const double scale : {0.25, 0.5, 4.0}) {
    settings.scale = scale;
    const std::string other = text_of(settings);
    EXPECT_EQ(static_cast<double>(std::count(other.begin(), other.end(), '\n')), 800 * scale);
    EXPECT_TRUE(scale < 1 ? whole.starts_with(other) : other.starts_with(whole));
  }
}

TEST(Generator, EveryArrivalProcessKeepsTheRate) {
  for (const Arrivals arrivals : {Arrivals::poisson, Arrivals::fixed, Arrivals::bursty}) {
    GeneratorSettings settings = sized(40'000);
    settings.arrivals = arrivals;
    settings.rate_per_s = 5;
    settings.first_prompt.mean = 1'000;
    const double span_s = to_seconds(info_of(settings).last_arrival - Time{});
    // Bursts are few: 8,000 s hold about 270 of them.
    EXPECT_NEAR(span_s, 8'000, arrivals == Arrivals::bursty ? 1'600 : 200);
  }
}

TEST(Generator, FixedArrivalsAreEquallyFarApart) {
  GeneratorSettings settings = sized(5);
  settings.arrivals = Arrivals::fixed;
  settings.rate_per_s = 4;
  const auto requests = generate(settings);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].arrival, Time{} + milliseconds(250 * static_cast<std::int64_t>(i)));
  }
}

TEST(Generator, BurstsLeavePausesThatPoissonHasNot) {
  const auto longest_gap_s = [](Arrivals arrivals) {
    GeneratorSettings settings = sized(5'000);
    settings.arrivals = arrivals;
    settings.burst_off_s = 30;
    Duration longest;
    Time last;
    for (const TraceRequest& request : generate(settings)) {
      longest = std::max(longest, request.arrival - last);
      last = request.arrival;
    }
    return to_seconds(longest);
  };
  EXPECT_LT(longest_gap_s(Arrivals::poisson), 6);
  EXPECT_GT(longest_gap_s(Arrivals::bursty), 30);
}

// The published figures (store-mechanics 11.1), by default settings; README.md has the table.
TEST(Generator, DefaultsAreShapedAfterTheConversationTrace) {
  const TraceInfo info = info_of({});
  const auto near = [](double value, double published, double share) {
    EXPECT_NEAR(value, published, published * share);
  };
  EXPECT_EQ(info.requests, 12'031);
  near(to_seconds(info.last_arrival - Time{}), 3'537, 0.03);
  near(info.input_tokens.mean, 12'035, 0.05);
  near(static_cast<double>(info.input_tokens.p50), 6'909, 0.05);
  near(static_cast<double>(info.input_tokens.p90), 27'367, 0.05);
  near(info.output_tokens.mean, 342.6, 0.02);
  near(static_cast<double>(info.blocks_total), 288'500, 0.05);
  EXPECT_NEAR(100 * info.share_of_blocks(info.hits), 36.64, 1);
  near(static_cast<double>(info.reuse_gap_ms.p50), 114'000, 0.1);
}

TEST(Generator, ASettingOutOfRangeIsNamed) {
  const auto refusal = [](auto change) {
    GeneratorSettings settings;
    change(settings);
    try {
      Generator generator(settings);
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal([](auto& s) { s.requests = 0; }), "requests: expected 1 to 1000000000, found 0");
  EXPECT_EQ(refusal([](auto& s) { s.rate_per_s = 0; }), "rate_per_s: expected 1e-06 to 1e+06, found 0");
  EXPECT_EQ(refusal([](auto& s) { s.rate_per_s = std::numeric_limits<double>::quiet_NaN(); }),
            "rate_per_s: expected 1e-06 to 1e+06, found nan");
  EXPECT_EQ(refusal([](auto& s) { s.output.sigma = 9; }), "output.sigma: expected 0 to 5, found 9");
  EXPECT_EQ(refusal([](auto& s) { s.user_turn.max = {0}; }), "user_turn.max: expected 1 to 1000000000, found 0");
  EXPECT_EQ(refusal([](auto& s) { s.shared_blocks = 2; }),
            "first_prompt.min: expected more than the 1024 tokens of shared_blocks, found 891");
  EXPECT_EQ(refusal([](auto& s) { s.prompt_max = {5}; }), "prompt_max: expected 126195 to 1000000000, found 5");
  EXPECT_EQ(refusal([](auto& s) { s.turns_mean = 0.5; }), "turns_mean: expected 1 to 1e+06, found 0.5");
}

}  // namespace
}  // namespace kvlift
