// Integer arithmetic against the C library's, and distributions against their moments.
#include "traces/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kvlift {
namespace {

constexpr double kQ = 4294967296.0;
constexpr int kDraws = 200'000;

TEST(Sampling, Log2IsRightToTheLastBitButOne) {
  for (const std::uint64_t x : {1ULL, 2ULL, 3ULL, 10ULL, 511ULL, 65'537ULL, 1'000'000'007ULL, ~0ULL}) {
    EXPECT_NEAR(static_cast<double>(log2_q32(x)) / kQ, std::log2(static_cast<double>(x)), 2 / kQ) << x;
  }
  EXPECT_EQ(log2_q32(1), 0);
  EXPECT_EQ(log2_q32(1ULL << 63), std::int64_t{63} << 32);
}

TEST(Sampling, Exp2IsTheOtherWayRound) {
  EXPECT_EQ(exp2_q32(0), 1U);
  EXPECT_EQ(exp2_q32(std::int64_t{10} << 32), 1024U);
  EXPECT_EQ(exp2_q32(-1), 0U);
  EXPECT_EQ(exp2_q32(std::int64_t{62} << 32), std::uint64_t{1} << 62);
  EXPECT_EQ(exp2_q32(INT64_MAX), std::uint64_t{1} << 62);
  for (const double e : {0.5, 1.5, 9.99, 20.25, 33.3, 50.123}) {
    EXPECT_NEAR(static_cast<double>(exp2_q32(to_q32(e))), std::exp2(e), 1 + std::exp2(e) * 1e-9) << e;
  }
}

TEST(Sampling, NormalHasItsMomentsAndTails) {
  Random random(5);
  double sum = 0, squares = 0, fourths = 0;
  int beyond_2 = 0, beyond_3 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = static_cast<double>(normal_q32(random)) / kQ;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
    beyond_2 += std::fabs(z) > 2 ? 1 : 0;
    beyond_3 += std::fabs(z) > 3 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.011);  // five standard errors, here and below
  EXPECT_NEAR(squares / kDraws, 1, 0.016);
  EXPECT_NEAR(fourths / kDraws, 3, 0.11);
  EXPECT_NEAR(static_cast<double>(beyond_2) / kDraws, 0.0455, 0.0024);
  EXPECT_NEAR(static_cast<double>(beyond_3) / kDraws, 0.0027, 0.0006);
}

TEST(Sampling, ExponentialHasItsMeanAndMedian) {
  Random random(6);
  double sum = 0;
  int below_median = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Duration d = exponential(random, seconds(3));
    EXPECT_GE(d.ns, 0);
    sum += to_seconds(d);
    below_median += to_seconds(d) < 3 * 0.693147 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 3, 0.034);
  EXPECT_NEAR(static_cast<double>(below_median) / kDraws, 0.5, 0.006);
}

TEST(Sampling, LognormalHasItsMeanAndMedian) {
  const Lognormal lengths(12'000, 1, 1, 1'000'000'000);
  Random random(7);
  double sum = 0;
  int below_median = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto x = static_cast<double>(lengths.draw(random));
    sum += x;
    below_median += x < 12'000 * std::exp(-0.5) ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 12'000, 180);
  EXPECT_NEAR(static_cast<double>(below_median) / kDraws, 0.5, 0.006);
}

TEST(Sampling, LognormalStaysInItsBounds) {
  const Lognormal lengths(1'000, 2, 900, 1'100);
  Random random(8);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t x = lengths.draw(random);
    EXPECT_GE(x, 900);
    EXPECT_LE(x, 1'100);
  }
}

TEST(Sampling, SigmaZeroGivesTheMean) {
  const Lognormal lengths(343, 0, 1, 1'000'000);
  Random random(9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(lengths.draw(random), 343);
}

TEST(Sampling, TheFirstDrawsOfASeedAreThese) {
  Random random(1);
  const Lognormal lengths(12'000, 1, 1, 1'000'000);
  std::vector<std::int64_t> draws;
  for (int i = 0; i < 4; ++i) draws.push_back(lengths.draw(random));
  for (int i = 0; i < 2; ++i) draws.push_back(exponential(random, seconds(1)).ns);
  EXPECT_EQ(draws, (std::vector<std::int64_t>{11'183, 11'489, 5'249, 20'914, 1'253'482'832, 230'676'092}));
}

}  // namespace
}  // namespace kvlift
