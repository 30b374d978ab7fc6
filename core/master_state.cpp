// Bookkeeping of the master: objects, replicas, DRAM, leases, and the indexes over them.
#include "core/master_state.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace kvlift {

Master::State::State(const MasterSettings& s, const LegacySettings& l, const Policy& p, std::uint64_t seed)
    : settings(s), legacy(l), policy(p), random(seed) {}

Object* Master::State::find(const ObjectKey& key) {
  const Slot* at = where.find(key);
  return at == nullptr ? nullptr : &objects[*at];
}

const Object* Master::State::find(const ObjectKey& key) const { return const_cast<State*>(this)->find(key); }

Object& Master::State::create(const ObjectKey& key, Bytes size, Time now) {
  Slot slot = kNoSlot;
  if (free_slots.empty()) {
    slot = static_cast<Slot>(objects.size());
    objects.emplace_back();
  } else {
    slot = free_slots.back();
    free_slots.pop_back();
  }
  Object& object = objects[slot];
  object = Object{};
  object.live = true;
  object.key = key;
  object.size = size;
  object.put_start = now;
  object.version = next_version++;
  where.emplace(key, slot);
  return object;
}

void Master::State::erase(Object& object) {
  KVLIFT_ASSERT(object.live && !object.promotion.live && !object.offload.live);
  while (!object.memory.empty()) drop_memory(object, object.memory.size() - 1);
  object.on_disk = false;
  refresh(object);
  join_group(object, GroupId::none);
  delist(object);  // the slot's next object must not inherit a lease end
  where.erase(object.key);
  object.live = false;
  free_slots.push_back(slot_of(object));
}

void Master::State::join_group(Object& object, GroupId group) {
  if (object.group == group) return;
  if (object.group != GroupId::none) {
    std::vector<Slot>& members = groups[object.group];
    std::erase(members, slot_of(object));
    if (members.empty()) groups.erase(object.group);
  }
  object.group = group;
  if (group != GroupId::none) groups[group].push_back(slot_of(object));
}

void Master::State::erase_if_empty(Object& object) {
  if (object.memory.empty() && !object.on_disk && !object.promotion.live && !object.put_running) {
    if (object.offload.live) end_offload(object);
    erase(object);
  }
}

void Master::State::refresh(Object& object) {
  const bool evictable = object.live && !object.hard_pin &&
                         std::any_of(object.memory.begin(), object.memory.end(),
                                     [](const MemoryReplica& r) { return r.complete && r.references == 0; });
  if (evictable != object.evictable) {
    evictable_objects += evictable ? 1 : -1;
    object.evictable = evictable;
  }
  if (evictable) eviction_idle = false;
  if (evictable && object.candidate_order == 0) enlist(object, object.lease_timeout, next_order++);
  const bool resident = !object.memory.empty();
  if (resident && object.resident_at == kNoSlot) {
    object.resident_at = static_cast<std::uint32_t>(residents.size());
    residents.push_back(slot_of(object));
  } else if (!resident && object.resident_at != kNoSlot) {
    const Slot last = residents.back();
    residents[object.resident_at] = last;
    objects[last].resident_at = object.resident_at;
    residents.pop_back();
    object.resident_at = kNoSlot;
  }
}

void Master::State::enlist(Object& object, Time stamp, std::uint64_t order) {
  object.candidate_stamp = stamp;
  object.candidate_order = order;
  candidates_by_lease.insert({stamp, order, slot_of(object)});
}

void Master::State::delist(Object& object) {
  candidates_by_lease.erase({object.candidate_stamp, object.candidate_order, slot_of(object)});
  object.candidate_order = 0;
}

bool Master::State::readable(const Object& object) const {
  return object.on_disk ||
         std::any_of(object.memory.begin(), object.memory.end(), [](const MemoryReplica& r) { return r.complete; });
}

double Master::State::used_ratio() const {
  return capacity.value == 0 ? 0.0 : static_cast<double>(allocated.value) / static_cast<double>(capacity.value);
}

Result<Allocation> Master::State::allocate(Bytes size, NodeId preferred, SegmentId avoid, Region region) {
  std::vector<SegmentId> order;
  for (std::uint32_t s = 0; s < segments.size(); ++s) {
    if (segments[s].live && static_cast<SegmentId>(s) != avoid) order.push_back(static_cast<SegmentId>(s));
  }
  // A random start and then the next ones: every segment is tried before the pool counts as full.
  if (!order.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(random.below(order.size()));
    std::rotate(order.begin(), order.begin() + first, order.end());
  }
  const auto free_share = [this](SegmentId s) {
    const SegmentRoom& room = segments[index(s)].room;
    return room.capacity().value == 0
               ? 0.0
               : 1.0 - static_cast<double>(room.used().value) / static_cast<double>(room.capacity().value);
  };
  if (settings.allocation_strategy == AllocationStrategy::free_ratio_first) {
    std::stable_sort(order.begin(), order.end(),
                     [&](SegmentId a, SegmentId b) { return free_share(a) > free_share(b); });
  } else if (settings.allocation_strategy == AllocationStrategy::local_first && preferred != NodeId::none) {
    std::stable_partition(order.begin(), order.end(),
                          [&](SegmentId s) { return segments[index(s)].node == preferred; });
  }
  for (const SegmentId s : order) {
    SegmentRoom& room = segments[index(s)].room;
    const Bytes before = room.used();
    if (const auto offset = room.allocate(size, region)) {
      allocated += room.used() - before;
      return {Error::OK, {segments[index(s)].node, s, *offset, size}};
    }
  }
  return {Error::NO_AVAILABLE_HANDLE, {}};
}

void Master::State::free(const Allocation& at) {
  Segment& segment = segments[index(at.segment)];
  if (!segment.live) return;  // unmounted meanwhile: its room is gone as a whole
  const Bytes before = segment.room.used();
  segment.room.release(at.offset, at.size);
  allocated -= before - segment.room.used();
  eviction_idle = false;
}

void Master::State::park(const Allocation& at, Time until) { parked.emplace(until, at); }

void Master::State::drop_memory(Object& object, std::size_t replica) {
  free(object.memory[replica].at);
  object.memory.erase(object.memory.begin() + static_cast<std::ptrdiff_t>(replica));
}

void Master::State::extend_lease(Object& object, Time until) {
  if (until > object.lease_timeout) object.lease_timeout = until;
  object.promoted_unused = false;
}

void Master::State::grant_lease(Object& object, Time now) {
  ++counters.leases_granted;
  extend_lease(object, now + settings.kv_lease_ttl);
  if (object.group == GroupId::none) return;
  // The group stays together; members whose lease is still long are left alone.
  for (const Slot member : groups[object.group]) {
    Object& other = objects[member];
    if (other.lease_timeout - now <= Duration{settings.kv_lease_ttl.ns / 2})
      extend_lease(other, now + settings.kv_lease_ttl);
  }
}

ClientState* Master::State::client(NodeId n) {
  if (n == NodeId::none || index(n) >= clients.size() || !clients[index(n)].known) return nullptr;
  return &clients[index(n)];
}

std::uint32_t Master::State::begin_timed(TaskKind kind, Slot slot, Time now) {
  const std::uint32_t serial = next_serial++;
  timed.push_back({now, slot, serial, kind});
  return serial;
}

}  // namespace kvlift
