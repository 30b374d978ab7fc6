// Put, upsert and remove (store-mechanics 2.2, 2.3, 2.5).
#include <algorithm>

#include "core/assert.hpp"
#include "core/master_state.hpp"

namespace kvlift {

/// Allocates the replicas of a write, each on a segment of its own as far as there are enough; all or none.
Result<std::vector<Allocation>> Master::State::place(Object& object, const PutOptions& options, Time now) {
  const std::int64_t wanted = options.replica_num > 0 ? options.replica_num : settings.replica_num;
  Result<std::vector<Allocation>> placed;
  for (std::int64_t r = 0; r < wanted; ++r) {
    const SegmentId avoid = placed.value.empty() ? SegmentId::none : placed.value.back().segment;
    const auto one = allocate(object.size, options.preferred, avoid);
    if (!one.ok()) {
      for (const Allocation& at : placed.value) free(at);
      const auto mounted = std::count_if(segments.begin(), segments.end(), [](const Segment& s) { return s.live; });
      // A pool with fewer segments than replicas cannot be helped by eviction.
      if (mounted >= wanted) need_eviction = true, eviction_idle = false;
      ++counters.put_refused_no_handle;
      return {Error::NO_AVAILABLE_HANDLE, {}};
    }
    placed.value.push_back(one.value);
    placed.value.back().version = object.version;
  }
  for (const Allocation& at : placed.value) object.memory.push_back({at});
  object.put_running = true;
  object.put_start = now;
  object.serial = begin_timed(TaskKind::put, slot_of(object), now);
  if (options.soft_pin_ttl)
    object.soft_pin_timeout = now + std::min(*options.soft_pin_ttl, settings.kv_soft_pin_ttl_max);
  object.hard_pin = options.hard_pin;
  refresh(object);
  ++counters.put_started;
  return placed;
}

/// Takes the incomplete replicas of a write that was given up; its writer may still be writing.
void Master::State::abort_put(Object& object, Time now) {
  const Time until = std::max(now, object.put_start + settings.put_start_release_timeout);
  for (std::size_t r = object.memory.size(); r-- > 0;) {
    if (object.memory[r].complete) continue;
    park(object.memory[r].at, until);
    object.memory.erase(object.memory.begin() + static_cast<std::ptrdiff_t>(r));
  }
  object.put_running = false;
  refresh(object);
}

Result<std::vector<Allocation>> Master::put_start(NodeId writer, const ObjectKey& key, Bytes size,
                                                  const PutOptions& options, Time now) {
  State& s = *state_;
  if (!s.serving) return {Error::UNAVAILABLE_IN_CURRENT_STATUS, {}};
  if (size.value <= 0 || options.replica_num < 0) return {Error::INVALID_PARAMS, {}};
  Object* object = s.find(key);
  if (object != nullptr) {
    const bool young = object->put_running && now - object->put_start < s.settings.put_start_discard_timeout;
    // Any complete replica counts, also one on SSD only: engines take the code for success.
    if (s.readable(*object) || young || object->promotion.live) {
      ++s.counters.put_refused_exists;
      return {Error::OBJECT_ALREADY_EXISTS, {}};
    }
    s.abort_put(*object, now);
    object->size = size;
    object->version = s.next_version++;
    object->writer = writer;
  } else {
    object = &s.create(key, size, now);
    object->writer = writer;
  }
  s.join_group(*object, options.group);
  auto placed = s.place(*object, options, now);
  if (!placed.ok()) s.erase_if_empty(*object);
  return placed;
}

Error Master::put_end(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version) {
  State& s = *state_;
  Object* object = s.find(key);
  if (object == nullptr) return Error::OBJECT_NOT_FOUND;
  if (object->writer != writer) return Error::ILLEGAL_CLIENT;
  if (version != 0 && version != object->version) return Error::INVALID_WRITE;
  if (!object->put_running) {
    const bool all = !object->memory.empty() && std::all_of(object->memory.begin(), object->memory.end(),
                                                            [](const MemoryReplica& r) { return r.complete; });
    return all ? Error::OK : Error::INVALID_WRITE;
  }
  if (object->memory.empty()) {  // its segment went away under the write
    object->put_running = false;
    s.erase_if_empty(*object);
    return Error::INVALID_WRITE;
  }
  for (MemoryReplica& r : object->memory) r.complete = true;
  object->put_running = false;
  object->listed_running = s.legacy.stuck_running_puts;
  if (object->lease_timeout < now) object->lease_timeout = now;  // recency of an object that nobody has read
  s.refresh(*object);
  ++s.counters.put_ended;
  if (s.settings.enable_offload && !s.settings.offload_on_evict) {
    for (std::size_t r = 0; r < object->memory.size(); ++r) {
      if (s.enqueue_offload(*object, r, now) == Error::OK) break;  // one source is enough
    }
  }
  return Error::OK;
}

Error Master::put_revoke(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version) {
  State& s = *state_;
  (void)now;
  Object* object = s.find(key);
  if (object == nullptr) return Error::OBJECT_NOT_FOUND;
  if (object->writer != writer) return Error::ILLEGAL_CLIENT;
  if (version != 0 && version != object->version) return Error::INVALID_WRITE;
  if (!object->put_running) return Error::INVALID_WRITE;
  for (std::size_t r = object->memory.size(); r-- > 0;) {
    if (!object->memory[r].complete) s.drop_memory(*object, r);  // the writer itself says that it has stopped
  }
  object->put_running = false;
  s.refresh(*object);
  s.erase_if_empty(*object);
  ++s.counters.put_revoked;
  return Error::OK;
}

Result<std::vector<Allocation>> Master::upsert_start(NodeId writer, const ObjectKey& key, Bytes size,
                                                     const PutOptions& options, Time now) {
  State& s = *state_;
  Object* object = s.find(key);
  if (object == nullptr) return put_start(writer, key, size, options, now);
  if (!s.serving) return {Error::UNAVAILABLE_IN_CURRENT_STATUS, {}};
  if (size.value <= 0) return {Error::INVALID_PARAMS, {}};
  if (options.group != object->group) return {Error::INVALID_PARAMS, {}};
  if (object->promotion.live) return {Error::OBJECT_HAS_REPLICATION_TASK, {}};
  if (object->offload.live) {
    ClientState* owner = s.client(object->offload.owner);
    const auto queued = [&](const auto& entry) {
      return entry.first == s.slot_of(*object) && entry.second == object->offload.serial;
    };
    if (owner == nullptr || std::none_of(owner->offloads.begin(), owner->offloads.end(), queued))
      return {Error::OBJECT_HAS_REPLICATION_TASK, {}};  // it has started, and reads the old bytes
    s.end_offload(*object);
  }
  if (object->put_running) s.abort_put(*object, now);
  const bool busy = object->disk_references > 0 || std::any_of(object->memory.begin(), object->memory.end(),
                                                               [](const MemoryReplica& r) { return r.references > 0; });
  if (busy) return {Error::OBJECT_REPLICA_BUSY, {}};
  // A new version: the SSD copy is of the old one and must not be found again (RC-42).
  while (!object->memory.empty()) {
    s.park(object->memory.back().at, std::max(now, object->lease_timeout));  // old readers run under their lease
    object->memory.pop_back();
  }
  object->on_disk = false;
  object->size = size;
  object->version = s.next_version++;
  object->writer = writer;
  s.refresh(*object);
  auto placed = s.place(*object, options, now);
  if (!placed.ok()) s.erase_if_empty(*object);
  return placed;
}

Error Master::upsert_end(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version) {
  return put_end(writer, key, now, version);
}

/// Ends the offload task, wherever it stands; a mailbox entry of it is skipped by its serial.
void Master::State::end_offload(Object& object) {
  for (MemoryReplica& r : object.memory) {
    if (r.at.segment == object.offload.source && r.references > 0) --r.references;
  }
  object.offload = {};
  refresh(object);
}

Error Master::remove(const ObjectKey& key, bool force, Time now) {
  State& s = *state_;
  if (!s.serving) return Error::UNAVAILABLE_IN_CURRENT_STATUS;
  Object* object = s.find(key);
  if (object == nullptr) return Error::OBJECT_NOT_FOUND;
  if (!force && now < object->lease_timeout) return Error::OBJECT_HAS_LEASE;
  const bool incomplete = object->put_running || std::any_of(object->memory.begin(), object->memory.end(),
                                                             [](const MemoryReplica& r) { return !r.complete; });
  if (incomplete) return Error::REPLICA_IS_NOT_READY;
  if (object->promotion.live) {  // registered, not allocated: counted once, here (RC-25)
    ++s.counters.promotion_cancelled;
    s.end_promotion(*object, now, true);
  }
  if (object->offload.live) s.end_offload(*object);
  s.erase(*object);
  return Error::OK;
}

std::int64_t Master::remove_all(TenantId tenant, Time now) {
  std::int64_t removed = 0;
  for (Slot slot = 0; slot < state_->objects.size(); ++slot) {
    const Object& object = state_->objects[slot];
    if (!object.live || object.key.tenant != tenant) continue;
    const ObjectKey key = object.key;
    if (remove(key, false, now) == Error::OK) ++removed;
  }
  return removed;
}

}  // namespace kvlift
