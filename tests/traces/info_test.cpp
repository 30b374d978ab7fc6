// Figures of small traces that can be counted by hand, and the published table of a large one.
#include "traces/info.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <unordered_map>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/generator.hpp"

namespace kvlift {
namespace {

TraceRequest request(std::int64_t ms, std::int64_t input, std::vector<std::uint64_t> ids) {
  return {Time{} + milliseconds(ms), {input}, {10}, std::move(ids)};
}

/// Hits of an LRU cache that is really kept.
std::int64_t lru_hits(const std::vector<TraceRequest>& requests, std::size_t capacity) {
  std::list<std::uint64_t> order;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places;
  std::int64_t hits = 0;
  for (const TraceRequest& r : requests) {
    for (const std::uint64_t id : r.hash_ids) {
      const auto found = places.find(id);
      if (found != places.end()) {
        ++hits;
        order.erase(found->second);
      } else if (order.size() == capacity) {
        places.erase(order.back());
        order.pop_back();
      }
      order.push_front(id);
      places[id] = order.begin();
    }
  }
  return hits;
}

TEST(Figures, AreValuesOfTheListByNearestRank) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 200; i >= 1; --i) values.push_back(i);
  const Figures f = figures_of(values);
  EXPECT_EQ(f.count, 200);
  EXPECT_DOUBLE_EQ(f.mean, 100.5);
  EXPECT_EQ(f.min, 1);
  EXPECT_EQ(f.p50, 100);
  EXPECT_EQ(f.p90, 180);
  EXPECT_EQ(f.p99, 198);
  EXPECT_EQ(f.max, 200);
  std::vector<std::int64_t> one = {7}, none;
  EXPECT_EQ(figures_of(one).p99, 7);
  EXPECT_EQ(figures_of(none).count, 0);
}

TEST(Info, CountsRequestsStampsAndBlocks) {
  const TraceInfo info =
      describe(source_of({request(5, 150, {0, 1}), request(5, 200, {0, 2}), request(3005, 250, {0, 1, 3})}), kBlock);
  EXPECT_EQ(info.requests, 3);
  EXPECT_EQ(info.first_arrival, Time{} + milliseconds(5));
  EXPECT_EQ(info.last_arrival, Time{} + milliseconds(3005));
  EXPECT_EQ(info.distinct_stamps, 2);
  EXPECT_EQ(info.largest_tick, 2);
  EXPECT_EQ(info.input_tokens.max, 250);
  EXPECT_EQ(info.blocks_total, 7);
  EXPECT_EQ(info.blocks.max, 3);
  EXPECT_EQ(info.partial_blocks, 2);
  EXPECT_EQ(info.distinct_ids, 4);
  EXPECT_EQ(info.used_once, 2);
  EXPECT_EQ(info.misplaced_ids, 0);
}

TEST(Info, EachUseButTheFirstIsAHitOfTheInfiniteCache) {
  const TraceInfo info =
      describe(source_of({request(0, 150, {0, 1}), request(4, 150, {0, 1}), request(10, 150, {0, 2})}), kBlock);
  EXPECT_EQ(info.hits, 3);
  EXPECT_DOUBLE_EQ(info.share_of_blocks(info.hits), 0.5);
  EXPECT_EQ(info.reuse_gap_ms.count, 3);
  EXPECT_EQ(info.reuse_gap_ms.min, 4);
  EXPECT_EQ(info.reuse_gap_ms.max, 6);
}

TEST(Info, AnIdBehindAnotherIdThanAtFirstIsMisplaced) {
  EXPECT_EQ(describe(source_of({request(0, 150, {0, 1}), request(1, 150, {2, 1})}), kBlock).misplaced_ids, 1);
  EXPECT_EQ(describe(source_of({request(0, 150, {0, 1}), request(1, 50, {1})}), kBlock).misplaced_ids, 1);
  EXPECT_EQ(describe(source_of({request(0, 150, {0, 0})}), kBlock).misplaced_ids, 1);
}

TEST(Info, LruHitsAreThoseOfACacheThatIsReallyKept) {
  GeneratorSettings settings;
  settings.requests = 400;
  settings.think_mean_s = 20;
  settings.seed = 3;
  Generator generator(settings);
  std::vector<TraceRequest> requests;
  for (TraceRequest r; generator.next(r);) requests.push_back(r);
  const std::vector<std::int64_t> capacities = {1, 2, 10, 100, 500, 1'000, 5'000, 1'000'000};
  const TraceInfo info = describe(source_of(requests), settings.block_tokens, capacities);
  ASSERT_EQ(info.lru.size(), capacities.size());
  for (const LruPoint& point : info.lru) {
    EXPECT_EQ(point.hits, lru_hits(requests, static_cast<std::size_t>(point.capacity_blocks))) << point.capacity_blocks;
  }
  EXPECT_EQ(info.lru.back().hits, info.hits);
}

TEST(Info, OfNothingIsAllZero) {
  const TraceInfo info = describe(source_of({}), kBlock);
  EXPECT_EQ(info.requests, 0);
  EXPECT_EQ(info.blocks.max, 0);
  EXPECT_EQ(info.share_of_blocks(info.hits), 0);
}

// store-mechanics 11.1. Its LRU figures were rounded to two decimals before they were rounded to one.
TEST(Info, OfTheConversationTraceIsThePublishedTable) {
  const std::string file = conversation_trace();
  if (file.empty()) GTEST_SKIP() << "the conversation trace is absent; set KVLIFT_SHARED";
  TraceReader reader(file, Tokens{512});
  const TraceInfo info = describe(reader);
  EXPECT_EQ(info.requests, 12'031);
  EXPECT_EQ(info.first_arrival, Time{});
  EXPECT_EQ(info.last_arrival, Time{} + milliseconds(3'536'999));
  EXPECT_EQ(info.distinct_stamps, 1'180);
  EXPECT_EQ(info.largest_tick, 28);
  const auto expect = [](const Figures& f, double mean, std::vector<std::int64_t> min_p50_p90_p99_max) {
    EXPECT_NEAR(f.mean, mean, 0.5);
    EXPECT_EQ((std::vector<std::int64_t>{f.min, f.p50, f.p90, f.p99, f.max}), min_p50_p90_p99_max);
  };
  expect(info.input_tokens, 12'035, {891, 6'909, 27'367, 85'401, 126'195});
  expect(info.output_tokens, 343, {1, 350, 597, 1'120, 2'000});
  expect(info.blocks, 24.0, {2, 14, 54, 167, 247});
  EXPECT_EQ(info.blocks_total, 288'500);
  EXPECT_EQ(info.partial_blocks, 12'009);
  EXPECT_EQ(info.distinct_ids, 182'790);
  EXPECT_EQ(info.used_once, 138'646);
  EXPECT_NEAR(100 * info.share_of_blocks(info.hits), 36.64, 0.005);
  EXPECT_NEAR(static_cast<double>(info.reuse_gap_ms.p50), 114'000, 500);
  EXPECT_NEAR(static_cast<double>(info.reuse_gap_ms.p90), 519'000, 500);
  EXPECT_NEAR(static_cast<double>(info.reuse_gap_ms.p99), 1'578'000, 500);
  const std::vector<double> published = {4.5, 5.4, 11.0, 21.1, 28.8, 35.5, 36.4};
  ASSERT_EQ(info.lru.size(), published.size());
  for (std::size_t i = 0; i < published.size(); ++i) {
    EXPECT_NEAR(100 * info.share_of_blocks(info.lru[i].hits), published[i], 0.055) << info.lru[i].capacity_blocks;
  }
  EXPECT_EQ(info.misplaced_ids, 0);
}

}  // namespace
}  // namespace kvlift
