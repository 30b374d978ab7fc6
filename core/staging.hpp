// Room for reads of the SSD: one arena a holder (store-mechanics section 3.4).
//
// A reservation is held until the device and the reader are done with it; nothing is freed by age, so a buffer
// is never handed out while bytes may still land in it (F10, RC-59).
#pragma once

#include <cstdint>
#include <optional>

#include "core/range_allocator.hpp"
#include "core/units.hpp"

namespace kvlift {

/// One reservation; nothing is held when `bytes` is 0.
struct Staged {
  std::int64_t offset = 0;  ///< from the arena's start, a multiple of 4 KiB
  Bytes bytes;
};

class StagingArena {
 public:
  explicit StagingArena(Bytes capacity) : room_(capacity) {}

  /// What one object takes: aligned to 4 KiB for direct reads, with a page of slack at either end.
  static constexpr Bytes footprint(Bytes size) { return {((size.value + 4095) & ~std::int64_t{4095}) + 8192}; }

  bool fits_ever(Bytes size) const { return footprint(size) <= room_.capacity(); }
  /// Empty when there is no room in one piece now. `footprint` is at least 1.
  std::optional<Staged> reserve(Bytes footprint) {
    const auto offset = room_.allocate(footprint);
    return offset ? std::optional(Staged{*offset, footprint}) : std::nullopt;
  }
  /// Gives back what was reserved, if anything, and empties the reservation.
  void release(Staged& staged) {
    if (staged.bytes.value > 0) room_.release(staged.offset, staged.bytes);
    staged = {};
  }
  Bytes used() const { return room_.used(); }
  Bytes capacity() const { return room_.capacity(); }

 private:
  RangeAllocator room_;
};

}  // namespace kvlift
