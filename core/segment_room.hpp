// Room of one mounted segment: the part that everybody uses and, behind it, the part that only promotions may use
// (store-mechanics 8.2: a transit buffer, a reserved partition).
#pragma once

#include <cstdint>
#include <optional>

#include "core/range_allocator.hpp"
#include "core/units.hpp"

namespace kvlift {

enum class Region : std::uint8_t { shared, reserved };

class SegmentRoom {
 public:
  /// `reserved_share` of the capacity, 0 to 1, is reserved.
  SegmentRoom(Bytes capacity, double reserved_share)
      : reserved_bytes_(
            RangeAllocator::rounded({static_cast<std::int64_t>(static_cast<double>(capacity.value) * reserved_share)})),
        shared_({capacity.value - reserved_bytes_}),
        reserved_({reserved_bytes_}) {}

  /// Offset from the segment's start; empty when that region has no free range long enough.
  std::optional<std::int64_t> allocate(Bytes size, Region region) {
    if (region == Region::shared) return shared_.allocate(size);
    const auto offset = reserved_.allocate(size);
    return offset ? std::optional(shared_.capacity().value + *offset) : std::nullopt;
  }
  void release(std::int64_t offset, Bytes size) {
    if (region_of(offset) == Region::shared) return shared_.release(offset, size);
    reserved_.release(offset - shared_.capacity().value, size);
  }
  Region region_of(std::int64_t offset) const {
    return offset < shared_.capacity().value ? Region::shared : Region::reserved;
  }
  Bytes capacity() const { return shared_.capacity() + reserved_.capacity(); }
  Bytes used() const { return shared_.used() + reserved_.used(); }

 private:
  std::int64_t reserved_bytes_;
  RangeAllocator shared_, reserved_;
};

}  // namespace kvlift
