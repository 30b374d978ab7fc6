// Watermark eviction of DRAM (store-mechanics 2.6).
//
// There is no recency list: the order of victims is the order of lease ends. An ordered set of candidates stands in
// for the original's census of every shard; its stamps may be too old, since leases only grow, and are corrected when
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
  return std::any_of(segments.begin(), segments.end(), [this](const Segment& s) { return is_full(s); });
}

bool Master::State::is_full(const Segment& segment) const {
  return segment.live && segment.room.capacity().value > 0 &&
         static_cast<double>(segment.room.used().value) >
             static_cast<double>(segment.room.capacity().value) * settings.eviction_high_watermark_ratio;
}

/// The candidate with the earliest true stamp, or nothing. Entries of objects that are no candidates any more go.
const Master::State::Candidate* Master::State::first_candidate() {
  while (!candidates_by_lease.empty()) {
    const Candidate& first = *candidates_by_lease.begin();
    Object& object = objects[first.slot];
    if (!object.evictable) {
      delist(object);
    } else if (object.lease_timeout != first.stamp) {
      const std::uint64_t order = first.order;
      delist(object);
      enlist(object, object.lease_timeout, order);
    } else {
      return &first;
    }
  }
  return nullptr;
}

bool Master::State::group_is_leased(const Object& object, Time now) const {
  if (object.group == GroupId::none) return false;
  const std::vector<Slot>& members = groups.at(object.group);
  return std::any_of(members.begin(), members.end(),
                     [&](Slot m) { return objects[m].live && now < objects[m].lease_timeout; });
}

/// What happens to one victim; a group goes together, without its soft-pinned members in the first pass.
void Master::State::evict_one(Object& victim, Time now, bool soft_pins_too, CycleTally& tally) {
  std::vector<Slot> together{slot_of(victim)};
  if (victim.group != GroupId::none) together = groups.at(victim.group);
  for (const Slot slot : together) {
    Object& object = objects[slot];
    if (!object.live || !object.evictable) continue;
    if (!soft_pins_too && now < object.soft_pin_timeout) continue;
    const Time lease_end = object.lease_timeout;
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
      if (&object != &victim) tally.early.insert(lease_end);
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
  const double high = settings.eviction_high_watermark_ratio;
  double used = used_ratio();
  std::int64_t base = evictable_objects;
  // A cycle for the sake of full segments only (RC-66): objects elsewhere would go without making room there.
  const bool whole_pool = need_eviction || used > high;
  const auto makes_room = [&](const Object& object) {
    return whole_pool || std::any_of(object.memory.begin(), object.memory.end(), [this](const MemoryReplica& r) {
             return r.complete && r.references == 0 && is_full(segments[index(r.at.segment)]);
           });
  };
  if (!whole_pool) {
    base = std::count_if(residents.begin(), residents.end(),
                         [&](Slot slot) { return objects[slot].evictable && makes_room(objects[slot]); });
    for (const Segment& s : segments) {
      if (is_full(s))
        used = std::max(used, static_cast<double>(s.room.used().value) / static_cast<double>(s.room.capacity().value));
    }
  }
  if (base == 0) {
    need_eviction = false;
    eviction_idle = true;
    return;
  }
  ++counters.eviction_cycles;
  const double target = std::max(settings.eviction_ratio, used - high + settings.eviction_ratio);
  const double lower = std::max(target / 2, used - high);
  const auto share_of_base = [base](double share) {
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
  std::vector<Slot> seen;         // taken from the candidates; each comes up once a cycle
  std::vector<Slot> soft_pinned;  // victims of the second pass only
  Time cut = kNever;              // stamp of the ideal-th candidate: equal ones are taken with it
  std::int64_t looked_at = 0;
  const auto look_at = [&](Time stamp) {
    if (++looked_at == ideal) cut = stamp;
  };
  while (const Candidate* first = first_candidate()) {
    if (now < first->stamp) break;  // leased, and so is everything behind it
    while (!tally.early.empty() && *tally.early.begin() <= first->stamp) {
      look_at(*tally.early.begin());
      tally.early.erase(tally.early.begin());
    }
    if (tally.evicted >= ideal && first->stamp > cut) break;
    Object& object = objects[first->slot];
    seen.push_back(first->slot);
    candidates_by_lease.erase(candidates_by_lease.begin());  // it keeps its order, so that nothing enlists it again
    if (!makes_room(object)) continue;
    if (now < object.soft_pin_timeout) {
      soft_pinned.push_back(slot_of(object));
      continue;
    }
    look_at(object.lease_timeout);
    if (!group_is_leased(object, now)) evict_one(object, now, false, tally);
  }
  if (settings.allow_evict_soft_pinned_objects) {
    const std::int64_t least = share_of_base(lower);
    for (const Slot slot : soft_pinned) {
      if (tally.evicted + released >= least) break;
      Object& object = objects[slot];
      if (!object.evictable) continue;  // it went with its group
      if (!group_is_leased(object, now)) evict_one(object, now, true, tally);
    }
  }
  for (const Slot slot : seen) {
    objects[slot].candidate_order = 0;
    if (objects[slot].live) refresh(objects[slot]);
  }
  const bool fruitful = tally.evicted + released > 0;
  if (fruitful || tally.deferred > 0) need_eviction = false;
  if (!fruitful) ++counters.eviction_cycles_fruitless;
  eviction_idle = !fruitful && tally.deferred == 0;
}

}  // namespace kvlift
