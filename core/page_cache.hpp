// The host's page cache, for stores that read their SSD files buffered: LRU by object, counted in bytes.
//
// It only tells which bytes of a read do not touch the device. The original store reads buffered by default
// (store-mechanics section 7, MOONCAKE_OFFLOAD_USE_URING false), and its eight ranks read each key one after another.
#pragma once

#include <cstdint>
#include <list>

#include "core/flat_map.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace kvlift {

class PageCache {
 public:
  explicit PageCache(Bytes capacity) : capacity_(capacity) {}
  PageCache(const PageCache& other) : capacity_(other.capacity_) {
    for (auto it = other.young_first_.rbegin(); it != other.young_first_.rend(); ++it) touch(it->first, it->second);
  }
  PageCache& operator=(const PageCache& other) { return *this = PageCache(other); }
  PageCache(PageCache&&) noexcept = default;
  PageCache& operator=(PageCache&&) noexcept = default;

  /// A read or write of the object passes by: true when its bytes were here. They are the youngest now.
  bool touch(const ObjectKey& key, Bytes size) {
    if (size > capacity_) return false;
    if (const auto* at = where_.find(key)) {
      young_first_.splice(young_first_.begin(), young_first_, *at);
      return true;
    }
    young_first_.emplace_front(key, size);
    where_.emplace(key, young_first_.begin());
    used_ += size;
    while (used_ > capacity_) {
      used_ -= young_first_.back().second;
      where_.erase(young_first_.back().first);
      young_first_.pop_back();
    }
    return false;
  }

 private:
  Bytes capacity_;
  Bytes used_;
  std::list<std::pair<ObjectKey, Bytes>> young_first_;
  FlatMap<std::list<std::pair<ObjectKey, Bytes>>::iterator> where_;
};

}  // namespace kvlift
