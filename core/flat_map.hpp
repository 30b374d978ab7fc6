// Hash table from ObjectKey to a small value: open addressing, linear probing, no tombstones.
//
// Look-ups of millions of keys are most of what a master does; here one costs one cache miss and no allocation.
// It cannot be iterated, so its order cannot leak into results.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/ids.hpp"

namespace kvlift {

template <class Value>
class FlatMap {
 public:
  static_assert(std::is_trivially_copyable_v<Value>);

  /// The value of that key, valid until the next change; null when there is none.
  Value* find(const ObjectKey& key) {
    if (entries_.empty()) return nullptr;
    const std::size_t i = place(key);
    return entries_[i].used ? &entries_[i].value : nullptr;
  }
  const Value* find(const ObjectKey& key) const { return const_cast<FlatMap*>(this)->find(key); }
  bool contains(const ObjectKey& key) const { return find(key) != nullptr; }

  /// False, and nothing changes, when the key is there already.
  bool emplace(const ObjectKey& key, const Value& value) {
    if (4 * (size_ + 1) > 3 * entries_.size()) grow();
    Entry& entry = entries_[place(key)];
    if (entry.used) return false;
    entry = {key, value, true};
    ++size_;
    return true;
  }

  /// False when the key was not there.
  bool erase(const ObjectKey& key) {
    if (entries_.empty()) return false;
    std::size_t hole = place(key);
    if (!entries_[hole].used) return false;
    // What was pushed beyond the hole by it moves back, so that no look-up stops short.
    for (std::size_t i = next(hole); entries_[i].used; i = next(i)) {
      const std::size_t home = index_of(entries_[i].key);
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole].used = false;
    --size_;
    return true;
  }

  std::size_t size() const { return size_; }
  void clear() { *this = FlatMap(); }

 private:
  struct Entry {
    ObjectKey key;
    Value value;
    bool used = false;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  std::size_t index_of(const ObjectKey& key) const { return static_cast<std::size_t>(hash_of(key)) & mask(); }
  /// Where the key is or would go.
  std::size_t place(const ObjectKey& key) const {
    std::size_t i = index_of(key);
    while (entries_[i].used && entries_[i].key != key) i = next(i);
    return i;
  }
  void grow() {
    std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.empty() ? 16 : 2 * entries_.size()));
    for (const Entry& entry : old) {
      if (entry.used) entries_[place(entry.key)] = entry;
    }
  }

  std::vector<Entry> entries_;  ///< a power of two, at most three quarters used
  std::size_t size_ = 0;
};

}  // namespace kvlift
