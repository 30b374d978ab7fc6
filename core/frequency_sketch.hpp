// Count-min sketch of how often a key was asked for: the first gate of promotion-on-hit (store-mechanics 2.9).
//
// 4 rows of 4096 saturating bytes, all rows incremented, everything halved after 16,384 increments. So it ages by
// use, not by time. An empty sketch costs nothing until its first increment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace kvlift {

class FrequencySketch {
 public:
  /// Counts one use and answers the new estimate, 1..255.
  int increment(const ObjectKey& key) {
    if (cells_.empty()) cells_.resize(kRows * kColumns);
    int estimate = 255;
    std::uint64_t hash = hash_of(key);
    for (std::uint64_t row = 0; row < kRows; ++row, hash = mix64(hash + 0x9e3779b97f4a7c15ULL)) {
      std::uint8_t& cell = cells_[row * kColumns + hash % kColumns];
      if (cell < 255) ++cell;
      estimate = std::min<int>(estimate, cell);
    }
    if (++increments_ >= kAgeAt) {
      for (std::uint8_t& cell : cells_) cell /= 2;
      increments_ = 0;
    }
    return estimate;
  }

 private:
  static constexpr std::uint64_t kRows = 4;
  static constexpr std::uint64_t kColumns = 4096;
  static constexpr std::uint64_t kAgeAt = 16'384;
  std::vector<std::uint8_t> cells_;
  std::uint64_t increments_ = 0;
};

}  // namespace kvlift
