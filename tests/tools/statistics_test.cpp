#include "tools/experiment/statistics.hpp"

#include <gtest/gtest.h>

namespace kvlift::experiment {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> values{10, 20, 30, 40};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 25);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);  // rank 2.7
  EXPECT_DOUBLE_EQ(quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
}

TEST(Ci95, IsStudentsTimesTheStandardError) {
  // mean 5, variance 10 / 3 ... {3, 5, 7}: variance 4, standard error 2 / sqrt(3), t(2) = 4.303
  EXPECT_NEAR(*ci95({3, 5, 7}), 4.303 * 2 / 1.7320508, 1e-6);
  EXPECT_FALSE(ci95({3}).has_value());
  EXPECT_DOUBLE_EQ(*ci95({4, 4}), 0);
}

TEST(StudentT, FollowsThePublishedTable) {
  EXPECT_NEAR(student_t95(1), 12.706, 1e-9);
  EXPECT_NEAR(student_t95(30), 2.042, 1e-9);
  EXPECT_NEAR(student_t95(40), 2.0211, 5e-4);
  EXPECT_NEAR(student_t95(120), 1.9799, 5e-4);
}

TEST(FigureOf, IsTheMeanOfTheSeeds) {
  EXPECT_DOUBLE_EQ(figure_of({1, 2, 6}).value, 3);
  EXPECT_TRUE(figure_of({1, 2, 6}).ci95.has_value());
  EXPECT_FALSE(figure_of({1}).ci95.has_value());
}

}  // namespace
}  // namespace kvlift::experiment
