// Random numbers of the shapes a trace needs, in integer arithmetic.
//
// The C library's log and exp choose among code paths by processor, and compilers may fuse multiplications and
// additions, so that doubles drawn from one seed can differ in the last bit. Here everything after the settings is
// fixed point with 32 bits behind the point (Q32): one seed gives one trace on every machine.
#pragma once

#include <cstdint>

#include "core/random.hpp"
#include "core/time.hpp"

namespace kvlift {

inline constexpr int kQ32 = 32;
/// A double that a user gave, to Q32; both sides of the conversion are exact to 2^-33.
std::int64_t to_q32(double value);

/// log2 of a positive integer in Q32, rounded down.
std::int64_t log2_q32(std::uint64_t x);
/// 2^e for a Q32 exponent, rounded down; stays at 2^62 from e = 62 on.
std::uint64_t exp2_q32(std::int64_t e);

/// Standard normal in Q32 (Marsaglia's polar method).
std::int64_t normal_q32(Random& random);
/// Exponential with that mean, to the nanosecond.
Duration exponential(Random& random, Duration mean);

/// Lognormal by the mean of the distribution itself and the standard deviation of its logarithm; rounded to an integer,
/// then held in [min, max]. Sigma 0 gives the mean each time.
class Lognormal {
 public:
  Lognormal(double mean, double sigma, std::int64_t min, std::int64_t max);
  std::int64_t draw(Random& random) const;

 private:
  std::int64_t mu_q32_;     ///< mean of the base-2 logarithm
  std::int64_t sigma_q32_;  ///< of the base-2 logarithm
  std::int64_t min_, max_;
};

}  // namespace kvlift
