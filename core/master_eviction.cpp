// Watermark eviction of DRAM (store-mechanics 2.6).
//
// There is no recency list: the order of victims is the order of lease ends. A heap of candidates stands in for
// the original's census of every shard; its stamps may be too old, since leases only grow, and are corrected when
// they come up. So a cycle costs O(victims log n), and a cycle with nothing to free costs O(1).
#include <algorithm>
#include <cmath>

#include "core/assert.hpp"
#include "core/master_state.hpp"

namespace kvlift {

bool Master::State::eviction_due() const {
  if (need_eviction && used_ratio() > 0) return true;
  if (used_ratio() > settings.eviction_high_watermark_ratio) return true;
  if (!settings.eviction_per_segment) return false;
  // RC-66: a full segment refuses allocations although the pool as a whole is below the watermark.
  return std::any_of(segments.begin(), segments.end(), [this](const Segment& s) {
    return s.live && s.room.capacity().value > 0 &&
           static_cast<double>(s.room.used().value) >
               static_cast<double>(s.room.capacity().value) * settings.eviction_high_watermark_ratio;
  });
}

/// The youngest true stamp at the top, or nothing. Entries of objects that are no candidates any more go.
Master::State::Candidate* Master::State::clean_top() {
  while (!heap.empty()) {
    const Candidate top = heap.top();
    Object& object = objects[top.slot];
    if (!object.live || !object.evictable) {
      heap.pop();
      object.in_heap = false;
      continue;
    }
    if (object.lease_timeout == top.stamp) return const_cast<Candidate*>(&heap.top());
    heap.pop();
    heap.push({object.lease_timeout, top.order, top.slot});
  }
  return nullptr;
}

bool Master::State::group_is_leased(const Object& object, Time now) const {
  if (object.group == GroupId::none) return false;
  const std::vector<Slot>& members = groups.at(object.group);
  return std::any_of(members.begin(), members.end(),
                     [&](Slot m) { return objects[m].live && now < objects[m].lease_timeout; });
}

/// What happens to one victim; a group goes together.
void Master::State::evict_one(Object& victim, Time now, CycleTally& tally) {
  std::vector<Slot> together{slot_of(victim)};
  if (victim.group != GroupId::none) together = groups.at(victim.group);
  for (const Slot slot : together) {
    Object& object = objects[slot];
    if (!object.live || !object.evictable) continue;
    const bool offload_first = settings.enable_offload && settings.offload_on_evict && !object.on_disk;
    if (offload_first) {
      const auto cap =
          static_cast<std::int64_t>(settings.offload_cap_ratio * static_cast<double>(settings.offloading_queue_limit));
      const bool forced = settings.offload_force_evict && tally.deferred >= cap;
      if (!forced) {
        const auto source = std::find_if(object.memory.begin(), object.memory.end(),
                                         [](const MemoryReplica& r) { return r.complete && r.references == 0; });
        const Error queued = enqueue_offload(object, static_cast<std::size_t>(source - object.memory.begin()), now);
        if (queued == Error::OK) {
          ++tally.deferred;
        } else if (!settings.offload_force_evict) {
          continue;
        }
      }
    }
    std::int64_t freed = 0;
    for (std::size_t r = object.memory.size(); r-- > 0;) {
      if (!object.memory[r].complete || object.memory[r].references > 0) continue;
      freed += object.memory[r].at.size.value;
      drop_memory(object, r);
    }
    if (freed > 0) {
      ++tally.evicted;
      ++counters.objects_evicted;
      counters.bytes_evicted += static_cast<std::uint64_t>(freed);
      if (object.promoted_unused && object.memory.empty()) ++counters.promoted_evicted_unused;
      if (object.memory.empty()) object.promoted_unused = false;
      if (object.memory.empty() && !object.on_disk) ++counters.objects_lost;
    }
    refresh(object);
    erase_if_empty(object);
  }
}

void Master::State::evict(Time now) {
  if (evictable_objects == 0) {
    need_eviction = false;
    eviction_idle = true;
    return;
  }
  ++counters.eviction_cycles;
  const double used = used_ratio();
  const double high = settings.eviction_high_watermark_ratio;
  const double target = std::max(settings.eviction_ratio, used - high + settings.eviction_ratio);
  const double lower = std::max(target / 2, used - high);
  const auto share_of_base = [base = evictable_objects](double share) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(base) * share));
  };
  const std::int64_t ideal = share_of_base(target);

  CycleTally tally;
  std::int64_t released = 0;
  while (!parked.empty() && parked.begin()->first <= now) {
    free(parked.begin()->second);
    parked.erase(parked.begin());
    ++released;
  }
  std::vector<Slot> seen;              // taken from the heap; each comes up once a cycle
  std::vector<Candidate> soft_pinned;  // victims of the second pass only
  Time cut = kNever;                   // stamp of the ideal-th candidate: equal ones are taken with it
  std::int64_t looked_at = 0;
  while (const Candidate* top = clean_top()) {
    if (now < top->stamp) break;  // leased, and so is everything behind it
    if (tally.evicted >= ideal && top->stamp > cut) break;
    const Candidate candidate = *top;
    heap.pop();
    seen.push_back(candidate.slot);
    Object& object = objects[candidate.slot];
    if (now < object.soft_pin_timeout) {
      soft_pinned.push_back(candidate);
      continue;
    }
    if (++looked_at == ideal) cut = candidate.stamp;
    if (!group_is_leased(object, now)) evict_one(object, now, tally);
  }
  if (settings.allow_evict_soft_pinned_objects) {
    const std::int64_t least = share_of_base(lower);
    for (const Candidate& candidate : soft_pinned) {
      if (tally.evicted + released >= least) break;
      Object& object = objects[candidate.slot];
      if (!group_is_leased(object, now)) evict_one(object, now, tally);
    }
  }
  for (const Slot slot : seen) {
    objects[slot].in_heap = false;
    if (objects[slot].live) refresh(objects[slot]);
  }
  const bool fruitful = tally.evicted + released > 0;
  if (fruitful || tally.deferred > 0) need_eviction = false;
  if (!fruitful) ++counters.eviction_cycles_fruitless;
  eviction_idle = !fruitful && tally.deferred == 0;
}

}  // namespace kvlift
