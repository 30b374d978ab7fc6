// Exact LRU stack distances (Mattson 1970): how many other things were used since a thing's last use. A cache that
// evicts the least recently used and holds `capacity` things has it still exactly when the distance is below
// `capacity`, so one pass gives the hit rate of every capacity.
//
// Each thing stands in the slot of its last use, and a Fenwick tree counts the slots taken. Slots are numbered anew
// when they run out, so memory follows the number of things, not of uses. O(log things) per use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvlift {

class StackDistances {
 public:
  static constexpr std::int64_t kFirstUse = -1;

  /// Things are numbered 0, 1, ... in order of first use. The distance since the last use, or kFirstUse.
  std::int64_t use(std::uint32_t thing);

 private:
  static constexpr std::uint32_t kNothing = 0xffffffff;

  void add(std::size_t slot, std::int32_t amount);
  std::int64_t taken_up_to(std::size_t slot) const;
  void renumber();

  std::vector<std::uint32_t> slot_of_;   ///< by thing
  std::vector<std::uint32_t> thing_in_;  ///< by slot
  std::vector<std::int32_t> tree_;       ///< tree_[i] counts taken slots of (i - lowest bit of i, i], from 1
  std::size_t next_slot_ = 0;
};

}  // namespace kvlift
