#include "core/range_allocator.hpp"

#include "core/assert.hpp"

namespace kvlift {

RangeAllocator::RangeAllocator(Bytes capacity) : capacity_(capacity.value & ~(kAlignment - 1)) {
  if (capacity_ > 0) insert(0, capacity_);
}

void RangeAllocator::insert(std::int64_t offset, std::int64_t length) {
  by_offset_.emplace(offset, length);
  by_size_.emplace(length, offset);
}

std::optional<std::int64_t> RangeAllocator::allocate(Bytes size) {
  const std::int64_t length = rounded(size);
  KVLIFT_ASSERT(length > 0);
  const auto fit = by_size_.lower_bound({length, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [found, offset] = *fit;
  by_size_.erase(fit);
  by_offset_.erase(offset);
  if (found > length) insert(offset + length, found - length);
  used_ += length;
  return offset;
}

void RangeAllocator::release(std::int64_t offset, Bytes size) {
  std::int64_t length = rounded(size);
  used_ -= length;
  KVLIFT_ASSERT(used_ >= 0);
  auto after = by_offset_.lower_bound(offset);
  KVLIFT_ASSERT(after == by_offset_.end() || after->first >= offset + length);
  if (after != by_offset_.end() && after->first == offset + length) {
    length += after->second;
    by_size_.erase({after->second, after->first});
    after = by_offset_.erase(after);
  }
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    KVLIFT_ASSERT(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      offset = before->first;
      length += before->second;
      by_size_.erase({before->second, before->first});
      by_offset_.erase(before);
    }
  }
  insert(offset, length);
}

}  // namespace kvlift
