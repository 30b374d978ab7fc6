// Array that grows at its end without moving what it holds, except inside its small first segment.
//
// For tables that may grow to millions of elements while a caller waits: growing by one segment costs one small
// allocation, never a copy of the whole, and an empty array costs nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvlift {

template <class T, std::size_t kPerSegment>
class Segments {
 public:
  Segments() = default;
  Segments(Segments&& other) noexcept
      : segments_(std::move(other.segments_)), capacity_(std::exchange(other.capacity_, 0)) {}
  Segments& operator=(Segments&& other) noexcept {
    segments_ = std::move(other.segments_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  Segments(const Segments& other) : capacity_(other.capacity_) {
    const std::size_t count = std::min(capacity_, kPerSegment);
    for (const auto& segment : other.segments_) {
      segments_.push_back(std::make_unique<T[]>(count));
      std::copy_n(segment.get(), count, segments_.back().get());
    }
  }
  Segments& operator=(const Segments& other) { return *this = Segments(other); }
  ~Segments() = default;

  T& operator[](std::size_t i) { return segments_[i / kPerSegment][i % kPerSegment]; }
  const T& operator[](std::size_t i) const { return segments_[i / kPerSegment][i % kPerSegment]; }
  std::size_t capacity() const { return capacity_; }
  std::size_t memory_bytes() const { return capacity_ * sizeof(T) + segments_.capacity() * sizeof(segments_[0]); }

  /// Makes index capacity() usable. The first segment starts at kFirst elements and doubles; later ones are whole.
  void grow() {
    if (capacity_ == 0 || capacity_ >= kPerSegment) {
      const std::size_t count = capacity_ == 0 ? kFirst : kPerSegment;
      segments_.push_back(std::make_unique<T[]>(count));
      capacity_ += count;
      return;
    }
    auto larger = std::make_unique<T[]>(2 * capacity_);
    std::copy_n(segments_[0].get(), capacity_, larger.get());
    segments_[0] = std::move(larger);
    capacity_ *= 2;
  }

 private:
  static constexpr std::size_t kFirst = 8;
  static_assert(std::has_single_bit(kPerSegment) && kPerSegment >= kFirst);
  static_assert(std::is_trivially_copyable_v<T>);

  std::vector<std::unique_ptr<T[]>> segments_;
  std::size_t capacity_ = 0;
};

}  // namespace kvlift
