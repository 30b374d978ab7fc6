// DRAM -> SSD: mailboxes, reports and the LOCAL_DISK replica (store-mechanics 2.7).
#include <algorithm>

#include "core/master_state.hpp"

namespace kvlift {

Error Master::State::enqueue_offload(Object& object, std::size_t replica, Time now) {
  MemoryReplica& source = object.memory[replica];
  ClientState* owner = client(source.at.node);
  Error error = Error::OK;
  if (owner == nullptr || !owner->disk_mounted) {
    error = Error::SEGMENT_NOT_FOUND;
  } else if (!owner->accepting) {
    error = Error::UNABLE_OFFLOADING;
  } else if (static_cast<std::int64_t>(owner->offloads.size()) >= settings.offloading_queue_limit) {
    error = Error::KEYS_ULTRA_LIMIT;
  } else if (object.offload.live) {
    error = Error::OBJECT_ALREADY_EXISTS;
  }
  if (error != Error::OK) {
    ++counters.offload_refused;
    return error;
  }
  ++source.references;
  const std::uint32_t serial = begin_timed(TaskKind::offload, slot_of(object), now);
  object.offload = {true, source.at.node, source.at.segment, serial};
  owner->offloads.emplace_back(slot_of(object), serial);
  refresh(object);
  ++counters.offload_queued;
  return Error::OK;
}

Error Master::pull_offloads(NodeId holder, bool accepting, Time now, std::vector<OffloadTask>& out) {
  State& s = *state_;
  (void)now;
  ClientState* client = s.client(holder);
  if (client == nullptr || !client->disk_mounted) return Error::SEGMENT_NOT_FOUND;
  client->accepting = accepting;
  for (const auto& [slot, serial] : client->offloads) {
    Object& object = s.objects[slot];
    if (!object.live || !object.offload.live || object.offload.serial != serial) continue;
    if (!accepting) {
      ++s.counters.offload_nacked;
      s.end_offload(object);
      continue;
    }
    const auto source = std::find_if(object.memory.begin(), object.memory.end(),
                                     [&](const MemoryReplica& r) { return r.at.segment == object.offload.source; });
    if (source != object.memory.end()) out.push_back({object.key, source->at, object.version});
  }
  client->offloads.clear();
  s.eviction_idle = false;
  return Error::OK;
}

Error Master::notify_offload(NodeId holder, std::span<const OffloadReport> reports, Time now,
                             std::vector<bool>* accepted) {
  State& s = *state_;
  if (accepted != nullptr) accepted->assign(reports.size(), false);
  ClientState* client = s.client(holder);
  if (client == nullptr || !client->disk_mounted) return Error::SEGMENT_NOT_FOUND;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const OffloadReport& report = reports[i];
    const bool rescan = report.version == 0;
    Object* object = s.find(report.key);
    if (object != nullptr && !rescan && object->version == report.version && object->offload.live &&
        object->offload.owner == holder)
      s.end_offload(*object);
    if (report.size.value < 0) {
      ++s.counters.offload_nacked;
      continue;
    }
    if (object == nullptr) {
      if (!rescan) continue;  // removed while its bytes were written: they stay unlisted
      object = &s.create(report.key, report.size, now);
    }
    // Bytes of another version or size, or under a put that has not ended, are not this object's (RC-42).
    if (object->size != report.size || (!rescan && object->version != report.version) ||
        (rescan && object->put_running))
      continue;
    if (object->on_disk && object->disk_holder != holder) {
      const ClientState* other = s.client(object->disk_holder);
      if (other != nullptr && other->disk_mounted && other->epoch == object->disk_epoch)
        continue;  // one copy is listed
    }
    object->on_disk = true;
    object->disk_holder = holder;  // also of a holder that came back: its endpoint is another one now (RC-58)
    object->disk_epoch = client->epoch;
    if (accepted != nullptr) (*accepted)[i] = true;
    ++s.counters.offload_done;
    s.refresh(*object);
  }
  s.eviction_idle = false;
  return Error::OK;
}

Error Master::evict_disk_replicas(NodeId holder, std::span<const ObjectKey> keys, Time now) {
  State& s = *state_;
  (void)now;
  if (s.client(holder) == nullptr) return Error::SEGMENT_NOT_FOUND;
  for (const ObjectKey& key : keys) {
    Object* object = s.find(key);
    if (object == nullptr || !object->on_disk || object->disk_holder != holder) continue;
    // Also under a running promotion: its read fails, or its bytes are read already and it commits.
    object->on_disk = false;
    ++s.counters.disk_replicas_evicted;
    if (object->memory.empty() && !object->promotion.live) ++s.counters.objects_lost;
    s.refresh(*object);
    s.erase_if_empty(*object);
  }
  return Error::OK;
}

}  // namespace kvlift
