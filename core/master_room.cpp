// Room for promoted copies: out of the shared pool, or out of the part of each segment that only promotions use, and
// what happens when there is none (store-mechanics 8.2: DRAM from, allocation failure).
#include <algorithm>

#include "core/master_state.hpp"

namespace kvlift {

Result<Allocation> Master::State::allocate_for_promotion(Bytes size, Time now) {
  if (policy.dram != Policy::DramSource::shared_pool) {
    auto placed = allocate(size, NodeId::none, SegmentId::none, Region::reserved);
    while (!placed.ok() && policy.dram == Policy::DramSource::transit_buffer && drop_from_buffer(now))
      placed = allocate(size, NodeId::none, SegmentId::none, Region::reserved);
    if (placed.ok() || policy.dram_strict) return placed;
  }
  auto placed = allocate(size, NodeId::none, SegmentId::none);
  if (placed.ok()) return placed;
  switch (policy.on_full) {
    case Policy::OnFull::stop_list:
    case Policy::OnFull::next_key:
      break;
    case Policy::OnFull::evict:
      need_eviction = true;
      evict(now);
      placed = allocate(size, NodeId::none, SegmentId::none);
      break;
    case Policy::OnFull::swap: {
      // Twice the size without a range that is long enough: it is fragmentation that refuses, not fullness.
      const std::int64_t before = allocated.value;
      while (!placed.ok() && before - allocated.value < 2 * size.value && swap_one(now))
        placed = allocate(size, NodeId::none, SegmentId::none);
      break;
    }
  }
  return placed;
}

/// Drops one copy of the transit buffer that no lease protects: one that was read if there is any, else the oldest.
bool Master::State::drop_from_buffer(Time now) {
  std::erase_if(buffered, [this](const auto& entry) {
    const Object& object = objects[entry.first];
    return !object.live || std::none_of(object.memory.begin(), object.memory.end(),
                                        [&](const MemoryReplica& r) { return r.at == entry.second; });
  });
  for (const bool unread_too : {false, true}) {
    for (const auto& [slot, at] : buffered) {
      Object& object = objects[slot];
      if (!object.evictable || !object.on_disk || now < object.lease_timeout) continue;
      if (object.promoted_unused && !unread_too) continue;
      drop_resident(object);
      return true;
    }
  }
  return false;
}

/// Drops the coldest resident that SSD has too and nothing protects.
bool Master::State::swap_one(Time now) {
  std::vector<Slot> passed_over;
  bool swapped = false;
  while (const Candidate* first = first_candidate()) {
    if (now < first->stamp) break;  // leased, and so is everything behind it
    Object& object = objects[first->slot];
    swapped = object.on_disk && object.group == GroupId::none && now >= object.soft_pin_timeout;
    if (swapped) {
      drop_resident(object);
      ++counters.objects_swapped;
      break;
    }
    passed_over.push_back(first->slot);
    candidates_by_lease.erase(candidates_by_lease.begin());  // it keeps its order, so that nothing enlists it again
  }
  for (const Slot slot : passed_over) {
    objects[slot].candidate_order = 0;
    refresh(objects[slot]);
  }
  return swapped;
}

/// The object becomes SSD-only.
void Master::State::drop_resident(Object& object) {
  for (std::size_t r = object.memory.size(); r-- > 0;) {
    if (!object.memory[r].complete || object.memory[r].references > 0) continue;
    counters.bytes_evicted += static_cast<std::uint64_t>(object.memory[r].at.size.value);
    drop_memory(object, r);
  }
  ++counters.objects_evicted;
  if (object.promoted_unused && object.memory.empty()) ++counters.promoted_evicted_unused;
  if (object.memory.empty()) object.promoted_unused = false;
  refresh(object);
}

}  // namespace kvlift
