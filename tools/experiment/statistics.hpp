// The few statistics a result needs, each with one definition.
#pragma once

#include <optional>
#include <vector>

namespace kvlift::experiment {

double mean(const std::vector<double>& values);  ///< 0 for none

/// The q-quantile, 0 <= q <= 1, with linear interpolation between the two nearest order statistics (type 7 of
/// Hyndman and Fan; what numpy.percentile and vLLM's benchmark do). `sorted` ascending; 0 for none.
double quantile(const std::vector<double>& sorted, double q);

/// Half the width of the 95 % confidence interval of the mean, by Student's t; empty below two values.
std::optional<double> ci95(const std::vector<double>& values);

/// Two-sided 95 % point of Student's t.
double student_t95(std::size_t degrees_of_freedom);

/// A figure over seeds: its mean, and the interval when there are several.
struct Figure {
  double value = 0;
  std::optional<double> ci95;
};
Figure figure_of(const std::vector<double>& per_seed);

}  // namespace kvlift::experiment
