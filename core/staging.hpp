// Room for reads of the SSD: one arena a holder, counted in bytes (store-mechanics section 3.4).
//
// A reservation is held until the device and the reader are done with it; nothing is freed by age, so a buffer
// is never handed out while bytes may still land in it (F10, RC-59).
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "core/units.hpp"

namespace kvlift {

class StagingArena {
 public:
  explicit StagingArena(Bytes capacity) : capacity_(capacity) {}

  /// What one object takes: aligned to 4 KiB for direct reads, with a page of slack at either end.
  static constexpr Bytes footprint(Bytes size) { return {((size.value + 4095) & ~std::int64_t{4095}) + 8192}; }

  bool fits_ever(Bytes size) const { return footprint(size) <= capacity_; }
  /// False when there is no room now.
  [[nodiscard]] bool reserve(Bytes footprint) {
    if (used_ + footprint > capacity_) return false;
    used_ += footprint;
    return true;
  }
  void release(Bytes footprint) {
    used_ -= footprint;
    KVLIFT_ASSERT(used_.value >= 0);
  }
  Bytes used() const { return used_; }
  Bytes capacity() const { return capacity_; }

 private:
  Bytes capacity_;
  Bytes used_;
};

}  // namespace kvlift
