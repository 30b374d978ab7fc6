// Requests of one stamp set apart inside their tick.
#include "traces/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/traces/trace_text.hpp"

namespace kvlift {
namespace {

using Kind = SpreadSettings::Kind;

/// Requests with these stamps; the number of a request is its output length.
std::vector<TraceRequest> stamped(const std::vector<std::int64_t>& stamps_ms) {
  std::vector<TraceRequest> requests;
  for (const std::int64_t ms : stamps_ms) {
    const auto number = static_cast<std::int64_t>(requests.size());
    requests.push_back({Time{} + milliseconds(ms), {100}, {number}, {static_cast<std::uint64_t>(number)}});
  }
  return requests;
}

struct Outcome {
  std::vector<std::int64_t> arrivals_ns;
  SpreadReport report;
};

/// Spreads them; the order and all but the arrivals must come out as they went in.
Outcome spread(const std::vector<std::int64_t>& stamps_ms, SpreadSettings settings) {
  const std::vector<TraceRequest> in = stamped(stamps_ms);
  Spreader spreader(source_of(in), settings);
  Outcome outcome;
  for (TraceRequest request; spreader.next(request);) {
    const TraceRequest& original = in.at(outcome.arrivals_ns.size());
    EXPECT_EQ(request.output_length, original.output_length);
    EXPECT_EQ(request.hash_ids, original.hash_ids);
    outcome.arrivals_ns.push_back(request.arrival.ns);
  }
  EXPECT_EQ(outcome.arrivals_ns.size(), in.size());
  EXPECT_TRUE(std::is_sorted(outcome.arrivals_ns.begin(), outcome.arrivals_ns.end()));
  outcome.report = spreader.report();
  return outcome;
}

constexpr std::int64_t kMs = 1'000'000;

TEST(Spread, NoneLeavesArrivalsAsTheyAre) {
  EXPECT_EQ(spread({0, 0, 3000}, {Kind::none}).arrivals_ns, (std::vector<std::int64_t>{0, 0, 3000 * kMs}));
}

TEST(Spread, EvenSetsATickApartUntilTheNextStamp) {
  EXPECT_EQ(spread({0, 0, 0, 0, 3000}, {Kind::even}).arrivals_ns,
            (std::vector<std::int64_t>{0, 750 * kMs, 1500 * kMs, 2250 * kMs, 3000 * kMs}));
}

TEST(Spread, EvenRoundsDownToTheNanosecond) {
  EXPECT_EQ(spread({0, 0, 0, 1}, {Kind::even}).arrivals_ns, (std::vector<std::int64_t>{0, 333'333, 666'666, 1 * kMs}));
}

TEST(Spread, TicksHaveTheirOwnLength) {
  EXPECT_EQ(spread({0, 0, 2997, 2997, 6000}, {Kind::even}).arrivals_ns,
            (std::vector<std::int64_t>{0, 1'498'500'000, 2997 * kMs, 4'498'500'000, 6000 * kMs}));
}

TEST(Spread, TheLastTickIsAsLongAsTheOneBefore) {
  EXPECT_EQ(spread({0, 3000, 3000}, {Kind::even}).arrivals_ns, (std::vector<std::int64_t>{0, 3000 * kMs, 4500 * kMs}));
}

TEST(Spread, OneStampOnlyStaysAsItIs) {
  for (const Kind kind : {Kind::even, Kind::uniform}) {
    EXPECT_EQ(spread({5, 5, 5}, {kind}).arrivals_ns, (std::vector<std::int64_t>{5 * kMs, 5 * kMs, 5 * kMs}));
  }
}

TEST(Spread, UniformStaysInsideTheTickInOrder) {
  std::vector<std::int64_t> stamps(500, 0);
  stamps.resize(1000, 3000);
  stamps.push_back(6000);
  const auto arrivals = spread(stamps, {Kind::uniform, 3}).arrivals_ns;
  EXPECT_LT(arrivals[499], 3000 * kMs);
  EXPECT_GE(arrivals[500], 3000 * kMs);
  EXPECT_LT(arrivals[999], 6000 * kMs);
  // Half of 500 points lie in the first half of the tick, within five standard deviations.
  const auto first_half =
      std::count_if(arrivals.begin(), arrivals.begin() + 500, [](std::int64_t ns) { return ns < 1500 * kMs; });
  EXPECT_NEAR(static_cast<double>(first_half), 250, 56);
}

TEST(Spread, UniformIsDecidedByTheSeed) {
  const std::vector<std::int64_t> stamps = {0, 0, 0, 3000, 3000, 6000};
  EXPECT_EQ(spread(stamps, {Kind::uniform, 1}).arrivals_ns, spread(stamps, {Kind::uniform, 1}).arrivals_ns);
  EXPECT_NE(spread(stamps, {Kind::uniform, 1}).arrivals_ns, spread(stamps, {Kind::uniform, 2}).arrivals_ns);
}

TEST(Spread, TheReportSaysWhatWasFoundAndDone) {
  for (const Kind kind : {Kind::none, Kind::even, Kind::uniform}) {
    const SpreadReport report = spread({0, 0, 0, 2997, 6000, 6000}, {kind}).report;
    EXPECT_EQ(report.kind, kind);
    EXPECT_EQ(report.requests, 6);
    EXPECT_EQ(report.distinct_stamps, 3);
    EXPECT_EQ(report.largest_tick, 3);
    EXPECT_EQ(report.shortest_gap, milliseconds(2997));
    EXPECT_EQ(report.longest_gap, milliseconds(3003));
  }
  EXPECT_EQ(to_text(spread({0, 0, 0, 2997, 6000, 6000}, {Kind::even}).report),
            "6 requests on 3 stamps 2997 to 3003 ms apart, up to 3 on one; spread: even");
  EXPECT_EQ(to_text(spread({4}, {Kind::none}).report), "1 requests on 1 stamp, up to 1 on one; spread: none");
}

TEST(Spread, ATickTooLargeToHoldIsRefused) {
  const std::vector<TraceRequest> in = stamped(std::vector<std::int64_t>(Spreader::kTickRequestsMax + 1, 42));
  Spreader held(source_of(in), {Kind::even});
  TraceRequest request;
  EXPECT_THROW(
      try { held.next(request); } catch (const TraceError& error) {
        EXPECT_STREQ(error.what(), "more than 65536 requests with the timestamp 42: too many to be spread");
        throw;
      },
      TraceError);
  Spreader passed(source_of(in), {Kind::none});
  std::size_t count = 0;
  while (passed.next(request)) ++count;
  EXPECT_EQ(count, in.size());
}

TEST(Spread, AnErrorOfTheSourcePassesThrough) {
  TraceReader reader(bytes_in_memory(line_at(0) + "\n" + line_at(1) + "\nx", "t"), "t", kBlock);
  Spreader spreader([&](TraceRequest& request) { return reader.next(request); }, {Kind::even});
  TraceRequest request;
  EXPECT_TRUE(spreader.next(request));  // looked one ahead
  EXPECT_THROW(static_cast<void>(spreader.next(request)), TraceError);
}

}  // namespace
}  // namespace kvlift
