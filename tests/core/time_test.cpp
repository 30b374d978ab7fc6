#include "core/time.hpp"

#include <gtest/gtest.h>

namespace kvlift {
namespace {

TEST(Time, sums_stop_at_the_ends_of_the_range) {
  EXPECT_EQ(kNever + nanoseconds(1), kNever);
  EXPECT_EQ(Time{1} + kForever, kNever);
  EXPECT_EQ(kLongAgo - nanoseconds(1), kLongAgo);
  EXPECT_EQ(kNever - kLongAgo, kForever);
  EXPECT_EQ(kLongAgo - kNever, Duration{kLongAgo.ns});
  EXPECT_EQ(Time{} - kLongAgo, kForever);
  EXPECT_EQ(kForever + kForever, kForever);
}

TEST(Time, ordinary_sums_are_exact) {
  EXPECT_EQ(Time{5} + nanoseconds(-7), Time{-2});
  EXPECT_EQ(Time{5} - Time{7}, nanoseconds(-2));
  EXPECT_EQ(seconds(1), milliseconds(1'000));
  EXPECT_EQ(milliseconds(1), microseconds(1'000));
}

TEST(Time, seconds_as_a_double_round_half_away_from_zero_and_saturate) {
  EXPECT_EQ(from_seconds(1.5e-9), nanoseconds(2));
  EXPECT_EQ(from_seconds(-1.5e-9), nanoseconds(-2));
  EXPECT_EQ(from_seconds(0.1), milliseconds(100));
  EXPECT_EQ(from_seconds(1e30), kForever);
  EXPECT_EQ(from_seconds(-1e30), Duration{kLongAgo.ns});
  EXPECT_DOUBLE_EQ(to_seconds(milliseconds(1'500)), 1.5);
  EXPECT_DOUBLE_EQ(to_milliseconds(microseconds(1'500)), 1.5);
}

}  // namespace
}  // namespace kvlift
