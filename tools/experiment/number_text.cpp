#include "tools/experiment/number_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace kvlift::experiment {

std::string number_text(double number) {
  std::array<char, 64> buffer{};
  // Plain digits where an integer is exact, so that sizes do not read 2.68435456e+08.
  const bool plain = std::nearbyint(number) == number && std::fabs(number) < 9.0e15;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::general;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number == 0 ? 0.0 : number, format);
  return {buffer.data(), result.ptr};
}

std::string fixed_text(double number, int decimals) {
  if (!std::isfinite(number)) return "-";
  std::array<char, 400> buffer{};
  const double value = rounded(number, decimals);
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), result.ptr};
}

double rounded(double number, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double value = std::nearbyint(number * scale) / scale;
  if (!std::isfinite(value)) return number;
  return value == 0 ? 0.0 : value;
}

}  // namespace kvlift::experiment
