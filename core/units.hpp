// Counts that must not be mixed up: bytes are not tokens.
#pragma once

#include <compare>
#include <cstdint>

namespace kvlift {

/// A signed 64-bit count of one kind of thing.
template <class Tag>
struct Quantity {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.value * n}; }
  constexpr Quantity& operator+=(Quantity b) { return value += b.value, *this; }
  constexpr Quantity& operator-=(Quantity b) { return value -= b.value, *this; }
};

using Bytes = Quantity<struct BytesTag>;
using Tokens = Quantity<struct TokensTag>;

constexpr Bytes kibibytes(std::int64_t n) { return {n << 10}; }
constexpr Bytes mebibytes(std::int64_t n) { return {n << 20}; }

}  // namespace kvlift
