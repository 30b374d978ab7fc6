// A table of operations that come and go: slots are reused, addresses stay, names never repeat.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace kvlift {

template <class T>
class Slots {
 public:
  /// A free slot; its value is what its last user left, so that its vectors keep their memory.
  std::uint32_t acquire() {
    ++live_;
    if (free_.empty()) {
      items_.emplace_back();
      items_.back().live = true;
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    items_[slot].live = true;
    return slot;
  }
  void release(std::uint32_t slot) {
    --live_;
    items_[slot].live = false;
    free_.push_back(slot);
  }
  T& operator[](std::uint32_t slot) { return items_[slot]; }
  const T& operator[](std::uint32_t slot) const { return items_[slot]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }
  std::int64_t live() const { return live_; }

 private:
  std::deque<T> items_;
  std::vector<std::uint32_t> free_;
  std::int64_t live_ = 0;
};

}  // namespace kvlift
