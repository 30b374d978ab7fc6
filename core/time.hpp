// Time as a value: core never asks for it, a driver passes it in.
//
// Both types count int64 nanoseconds. Sums saturate at the ends of the range, so that "now + for ever"
// stays for ever and a clock at its last tick cannot wrap into the past.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace kvlift {

/// A span of time in nanoseconds; may be negative.
struct Duration {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
};

/// A point in time: nanoseconds since the driver's own origin.
struct Time {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Time, Time) = default;
};

namespace detail {
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}
constexpr std::int64_t saturating_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}
}  // namespace detail

/// Later than every event; the deadline of a request that has none.
inline constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};
/// Earlier than every event; the stamp of what never happened.
inline constexpr Time kLongAgo{std::numeric_limits<std::int64_t>::min()};
inline constexpr Duration kForever{std::numeric_limits<std::int64_t>::max()};

constexpr Duration nanoseconds(std::int64_t n) { return {n}; }
constexpr Duration microseconds(std::int64_t n) { return {n * 1'000}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000}; }

constexpr Time operator+(Time t, Duration d) { return {detail::saturating_add(t.ns, d.ns)}; }
constexpr Time operator-(Time t, Duration d) { return {detail::saturating_subtract(t.ns, d.ns)}; }
constexpr Duration operator-(Time a, Time b) { return {detail::saturating_subtract(a.ns, b.ns)}; }
constexpr Duration operator+(Duration a, Duration b) { return {detail::saturating_add(a.ns, b.ns)}; }
constexpr Duration operator*(Duration d, std::int64_t n) { return {detail::saturating_multiply(d.ns, n)}; }
constexpr Duration operator-(Duration a, Duration b) { return {detail::saturating_subtract(a.ns, b.ns)}; }

constexpr double to_milliseconds(Duration d) { return static_cast<double>(d.ns) / 1e6; }
constexpr double to_seconds(Duration d) { return static_cast<double>(d.ns) / 1e9; }
/// Rounds half away from zero and saturates; for the border to drivers whose clock is a double.
constexpr Duration from_seconds(double s) {
  const double ns = s * 1e9;
  if (ns >= 9.2233720368547e18) return kForever;
  if (ns <= -9.2233720368547e18) return {std::numeric_limits<std::int64_t>::min()};
  return {static_cast<std::int64_t>(ns < 0 ? ns - 0.5 : ns + 0.5)};
}

}  // namespace kvlift
