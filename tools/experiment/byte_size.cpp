#include "tools/experiment/byte_size.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "tools/experiment/number_text.hpp"

namespace kvlift::experiment {
namespace {

struct Suffix {
  std::string_view name;
  double bytes;
};
constexpr std::array<Suffix, 10> kSuffixes{{{"", 1},
                                            {"B", 1},
                                            {"KiB", 1024.0},
                                            {"MiB", 1048576.0},
                                            {"GiB", 1073741824.0},
                                            {"TiB", 1099511627776.0},
                                            {"KB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"TB", 1e12}}};

}  // namespace

std::optional<double> parse_byte_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  for (const Suffix& known : kSuffixes) {
    if (suffix == known.name) return std::nearbyint(number * known.bytes);
  }
  return std::nullopt;
}

std::string byte_size_text(double bytes) {
  constexpr std::array<Suffix, 4> binary{{{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}}};
  for (const Suffix& unit : binary) {
    if (bytes < unit.bytes) continue;
    // Exact to a quarter of the largest unit: 1.25 GiB, 256 MiB.
    if (std::fmod(bytes * 4, unit.bytes) == 0) return number_text(bytes / unit.bytes) + " " + std::string(unit.name);
    break;
  }
  constexpr std::array<Suffix, 4> decimal{{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}}};
  for (const Suffix& unit : decimal) {
    if (bytes >= unit.bytes) {
      return number_text(std::nearbyint(bytes / unit.bytes * 1000) / 1000) + " " + std::string(unit.name);
    }
  }
  return number_text(bytes) + " B";
}

}  // namespace kvlift::experiment
