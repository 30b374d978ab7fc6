// Room inside one DRAM segment: best fit by size, then lowest offset; neighbours that are free become one.
//
// Offsets and lengths are multiples of 4 KiB, as direct I/O and memory registration want them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/units.hpp"

namespace kvlift {

class RangeAllocator {
 public:
  static constexpr std::int64_t kAlignment = 4096;
  static constexpr std::int64_t rounded(Bytes size) { return (size.value + kAlignment - 1) & ~(kAlignment - 1); }

  explicit RangeAllocator(Bytes capacity);

  /// Offset in bytes; empty when no free range is long enough. `size` is at least 1.
  std::optional<std::int64_t> allocate(Bytes size);
  /// Gives back what allocate(size) returned.
  void release(std::int64_t offset, Bytes size);

  Bytes capacity() const { return {capacity_}; }
  Bytes used() const { return {used_}; }
  /// The longest range that is free: less than capacity - used when the segment is fragmented.
  Bytes largest_free() const { return {by_size_.empty() ? 0 : by_size_.rbegin()->first}; }

 private:
  void insert(std::int64_t offset, std::int64_t length);
  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::map<std::int64_t, std::int64_t> by_offset_;           ///< free: offset -> length
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  ///< free: (length, offset)
};

}  // namespace kvlift
