// Seeded randomness with an integer interface: the same seed gives the same draws on every compiler.
#pragma once

#include <cstdint>

#include "core/ids.hpp"

namespace kvlift {

/// SplitMix64 (Steele, Lea, Flood 2014). A value: copying it copies the stream.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }

  /// Uniform in [0, bound); 0 when bound is 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<__uint128_t>(next()) * bound) >> 64);
  }

  /// True in `numerator` of `denominator` draws.
  constexpr bool chance(std::uint64_t numerator, std::uint64_t denominator) { return below(denominator) < numerator; }

  /// A stream of its own, so that drawing more in one part of a program does not shift another part.
  constexpr Random fork(std::uint64_t label) { return Random(mix64(next() ^ mix64(label))); }

 private:
  std::uint64_t state_;
};

}  // namespace kvlift
