#include "traces/stack_distance.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace kvlift {

std::int64_t StackDistances::use(std::uint32_t thing) {
  KVLIFT_ASSERT(thing <= slot_of_.size() && thing != kNothing);
  if (next_slot_ == thing_in_.size()) renumber();
  std::int64_t distance = kFirstUse;
  if (thing == slot_of_.size()) {
    slot_of_.push_back(kNothing);
  } else {
    const std::uint32_t last = slot_of_[thing];
    distance = static_cast<std::int64_t>(slot_of_.size()) - taken_up_to(last);
    add(last, -1);
    thing_in_[last] = kNothing;
  }
  slot_of_[thing] = static_cast<std::uint32_t>(next_slot_);
  thing_in_[next_slot_] = thing;
  add(next_slot_++, 1);
  return distance;
}

void StackDistances::add(std::size_t slot, std::int32_t amount) {
  for (std::size_t i = slot + 1; i < tree_.size(); i += i & -i) tree_[i] += amount;
}

std::int64_t StackDistances::taken_up_to(std::size_t slot) const {
  std::int64_t sum = 0;
  for (std::size_t i = slot + 1; i > 0; i -= i & -i) sum += tree_[i];
  return sum;
}

void StackDistances::renumber() {
  const std::size_t slots = std::max<std::size_t>(1024, 2 * slot_of_.size());
  std::vector<std::uint32_t> old = std::exchange(thing_in_, std::vector<std::uint32_t>(slots, kNothing));
  tree_.assign(slots + 1, 0);
  next_slot_ = 0;
  for (const std::uint32_t thing : old) {
    if (thing == kNothing) continue;
    slot_of_[thing] = static_cast<std::uint32_t>(next_slot_);
    thing_in_[next_slot_] = thing;
    add(next_slot_++, 1);
  }
}

}  // namespace kvlift
