#include "tools/experiment/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace kvlift::experiment {

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(rank));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double student_t95(std::size_t degrees_of_freedom) {
  constexpr std::array<double, 30> table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                         2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                         2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees_of_freedom == 0) return INFINITY;
  if (degrees_of_freedom <= table.size()) return table[degrees_of_freedom - 1];
  // Cornish-Fisher expansion around the normal's 1.95996; within 0.0005 from 30 up.
  const double z = 1.959964;
  const double n = static_cast<double>(degrees_of_freedom);
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

std::optional<double> ci95(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  const double n = static_cast<double>(values.size());
  return student_t95(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
}

Figure figure_of(const std::vector<double>& per_seed) { return {mean(per_seed), ci95(per_seed)}; }

}  // namespace kvlift::experiment
