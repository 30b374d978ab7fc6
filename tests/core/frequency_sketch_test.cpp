#include "core/frequency_sketch.hpp"

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace kvlift {
namespace {

constexpr int kPeriod = 16'384;  ///< increments between two halvings

ObjectKey key(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }

TEST(FrequencySketch, counts_the_uses_of_a_lonely_key) {
  FrequencySketch sketch;
  for (int use = 1; use <= 255; ++use) ASSERT_EQ(sketch.increment(key(1)), use);
  EXPECT_EQ(sketch.increment(key(1)), 255) << "saturated, not wrapped";
}

TEST(FrequencySketch, never_estimates_less_than_the_truth_between_halvings) {
  FrequencySketch sketch;
  Random random(3);
  std::vector<int> truth(4'000);
  for (int i = 0; i < kPeriod - 1; ++i) {
    const std::uint64_t n = random.below(truth.size());
    const int estimate = sketch.increment(key(n));
    ASSERT_GE(estimate, ++truth[n]);
  }
}

TEST(FrequencySketch, ages_by_use_not_by_time) {
  FrequencySketch sketch;
  for (int i = 0; i < 100; ++i) (void)sketch.increment(key(1));
  for (int i = 100; i < kPeriod; ++i) (void)sketch.increment(key(2));
  EXPECT_EQ(sketch.increment(key(1)), 51) << "half of 100, and one more";
}

TEST(FrequencySketch, tenants_do_not_share_their_counts) {
  FrequencySketch sketch;
  ObjectKey other = key(1);
  other.tenant = TenantId{1};
  (void)sketch.increment(key(1));
  EXPECT_EQ(sketch.increment(other), 1);
}

/// Share in percent of first touches of a period that are estimated at 2 or more, in the fifth period.
double admitted_at_first_touch(std::uint64_t distinct_keys) {
  FrequencySketch sketch;
  Random random(1);
  std::uint64_t base = 0;
  int first_touches = 0;
  int admitted = 0;
  for (int period = 0; period < 5; ++period, base += distinct_keys) {
    std::vector<bool> seen(distinct_keys);
    for (int i = 0; i < kPeriod; ++i) {
      const std::uint64_t n =
          distinct_keys == kPeriod ? static_cast<std::uint64_t>(i) : random.below(distinct_keys);  // one-shot keys
      const int estimate = sketch.increment(key(base + n));
      if (period < 4 || seen[n]) continue;
      seen[n] = true;
      ++first_touches;
      admitted += estimate >= 2 ? 1 : 0;
    }
  }
  return 100.0 * admitted / first_touches;
}

// The second-touch gate is as good as open on a large key space.
TEST(FrequencySketch, admits_few_first_touches_of_a_small_key_space_and_nearly_all_of_a_large_one) {
  EXPECT_LT(admitted_at_first_touch(500), 12.0);
  EXPECT_GT(admitted_at_first_touch(4'000), 50.0);
  EXPECT_GT(admitted_at_first_touch(16'384), 95.0);
}

}  // namespace
}  // namespace kvlift
