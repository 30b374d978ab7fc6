#include "traces/sampling.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "core/assert.hpp"

namespace kvlift {
namespace {

using U128 = __uint128_t;
using I128 = __int128;

constexpr std::int64_t kLn2 = 2'977'044'472;    // ln 2 in Q32
constexpr std::int64_t kLog2E = 6'196'328'019;  // log2 e in Q32

/// Rounded down.
constexpr std::uint64_t square_root(U128 x) {
  std::uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t next = root | (std::uint64_t{1} << bit);
    if (U128{next} * next <= x) root = next;
  }
  return root;
}

/// 2^(1/2), 2^(1/4), ... 2^(1/2^32) in Q62.
constexpr std::array<std::uint64_t, 32> make_roots_of_two() {
  std::array<std::uint64_t, 32> roots{};
  std::uint64_t last = std::uint64_t{1} << 63;
  for (std::uint64_t& root : roots) root = last = square_root(U128{last} << 62);
  return roots;
}
constexpr std::array<std::uint64_t, 32> kRootsOfTwo = make_roots_of_two();

constexpr std::int64_t multiply_q32(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>((I128{a} * b) >> kQ32);
}

}  // namespace

std::int64_t to_q32(double value) { return std::llround(value * 4294967296.0); }

std::int64_t log2_q32(std::uint64_t x) {
  KVLIFT_ASSERT(x > 0);
  const int whole = 63 - std::countl_zero(x);
  std::uint64_t y = x << (63 - whole);  // in [1, 2) as Q63
  std::int64_t fraction = 0;
  for (int i = 0; i < kQ32; ++i) {
    const U128 square = U128{y} * y;  // Q126
    const bool two = (square >> 127) != 0;
    fraction = fraction * 2 + (two ? 1 : 0);
    y = static_cast<std::uint64_t>(square >> (two ? 64 : 63));
  }
  return (std::int64_t{whole} << kQ32) + fraction;
}

std::uint64_t exp2_q32(std::int64_t e) {
  if (e < 0) return 0;
  const std::int64_t whole = e >> kQ32;
  if (whole >= 62) return std::uint64_t{1} << 62;
  std::uint64_t y = std::uint64_t{1} << 62;  // in [1, 2) as Q62
  for (std::size_t i = 0; i < kRootsOfTwo.size(); ++i) {
    if ((e >> (31 - i) & 1) != 0) y = static_cast<std::uint64_t>((U128{y} * kRootsOfTwo[i]) >> 62);
  }
  return y >> (62 - whole);
}

std::int64_t normal_q32(Random& random) {
  for (;;) {
    const std::int64_t u = static_cast<std::int64_t>(random.next() >> 32) - (std::int64_t{1} << 31);
    const std::int64_t v = static_cast<std::int64_t>(random.next() >> 32) - (std::int64_t{1} << 31);
    const std::uint64_t s = static_cast<std::uint64_t>(u * u) + static_cast<std::uint64_t>(v * v);  // Q62
    if (s == 0 || s >= std::uint64_t{1} << 62) continue;
    // z = u sqrt(-2 ln s / s); u * u / s is at most 1 and -2 ln s at most 86, so the product fits in 127 bits.
    const std::int64_t minus_ln = multiply_q32((std::int64_t{62} << kQ32) - log2_q32(s), kLn2);
    const U128 square = (static_cast<U128>(u * u) * static_cast<std::uint64_t>(2 * minus_ln) << 24) / s;  // Q56
    const auto z = static_cast<std::int64_t>(square_root(square) << 4);
    return u < 0 ? -z : z;
  }
}

Duration exponential(Random& random, Duration mean) {
  const std::uint64_t u = std::max<std::uint64_t>(random.next(), 1);  // in (0, 1) as Q64
  const std::int64_t minus_ln = multiply_q32((std::int64_t{64} << kQ32) - log2_q32(u), kLn2);
  return nanoseconds(multiply_q32(mean.ns, minus_ln));
}

Lognormal::Lognormal(double mean, double sigma, std::int64_t min, std::int64_t max) : min_(min), max_(max) {
  KVLIFT_ASSERT(mean >= 1 && mean <= 1e12 && sigma >= 0 && sigma <= 8 && min <= max);
  const std::int64_t variance = multiply_q32(to_q32(sigma), to_q32(sigma));
  const std::int64_t log2_mean =
      log2_q32(static_cast<std::uint64_t>(std::llround(mean * 65536.0))) - (std::int64_t{16} << kQ32);
  mu_q32_ = log2_mean - multiply_q32(variance / 2, kLog2E);
  sigma_q32_ = multiply_q32(to_q32(sigma), kLog2E);
}

std::int64_t Lognormal::draw(Random& random) const {
  const std::int64_t e = mu_q32_ + multiply_q32(sigma_q32_, normal_q32(random));
  const std::uint64_t twice = exp2_q32(e + (std::int64_t{1} << kQ32));
  return std::clamp(static_cast<std::int64_t>((twice + 1) / 2), min_, max_);
}

}  // namespace kvlift
