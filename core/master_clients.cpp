// Clients, their segments and their disk tier (store-mechanics 2.8), and the reaper of abandoned work (2.12).
#include <algorithm>

#include "core/assert.hpp"
#include "core/master_state.hpp"

namespace kvlift {

void Master::register_client(NodeId client, std::uint32_t epoch, Time now) {
  State& s = *state_;
  if (index(client) >= s.clients.size()) s.clients.resize(index(client) + 1);
  ClientState& c = s.clients[index(client)];
  if (c.known && c.epoch != epoch) s.expire(client, now);  // a new process: the old one's DRAM is gone
  c.known = true;
  c.epoch = epoch;
  c.last_ping = now;
}

bool Master::ping(NodeId client, Time now) {
  ClientState* c = state_->client(client);
  if (c == nullptr) return false;
  c->last_ping = std::max(c->last_ping, now);
  return true;
}

Result<SegmentId> Master::mount_segment(NodeId client, Bytes capacity, Time now) {
  State& s = *state_;
  (void)now;
  ClientState* c = s.client(client);
  if (c == nullptr) return {Error::SEGMENT_NOT_FOUND, SegmentId::none};
  if (capacity.value <= 0) return {Error::INVALID_PARAMS, SegmentId::none};
  if (c->segment != SegmentId::none) return {Error::SEGMENT_ALREADY_EXISTS, c->segment};
  const auto id = static_cast<SegmentId>(s.segments.size());
  const bool parted = s.policy.dram != Policy::DramSource::shared_pool;
  s.segments.push_back({true, client, SegmentRoom(capacity, parted ? s.policy.dram_share : 0)});
  s.capacity += s.segments.back().room.capacity();
  c->segment = id;
  s.eviction_idle = false;
  return {Error::OK, id};
}

Error Master::unmount_segment(SegmentId segment, Time now) {
  State& s = *state_;
  if (segment == SegmentId::none || index(segment) >= s.segments.size() || !s.segments[index(segment)].live)
    return Error::SEGMENT_NOT_FOUND;
  s.unmount(segment, now);
  return Error::OK;
}

void Master::State::unmount(SegmentId id, Time now) {
  Segment& segment = segments[index(id)];
  segment.live = false;
  capacity -= segment.room.capacity();
  allocated -= segment.room.used();
  if (ClientState* owner = client(segment.node)) owner->segment = SegmentId::none;
  std::erase_if(parked, [id](const auto& entry) { return entry.second.segment == id; });
  for (Object& object : objects) {
    if (!object.live) continue;
    if (object.offload.live && object.offload.source == id) end_offload(object);
    const bool staged_here = object.promotion.live && object.promotion.allocated &&
                             std::any_of(object.memory.begin(), object.memory.end(),
                                         [id](const MemoryReplica& r) { return !r.complete && r.at.segment == id; });
    const bool was_readable = readable(object);
    std::erase_if(object.memory, [id](const MemoryReplica& r) { return r.at.segment == id; });
    if (was_readable && !readable(object)) ++counters.objects_lost;
    if (staged_here) {
      ++counters.promotion_cancelled;
      end_promotion(object, now, true);
    }
    refresh(object);
    erase_if_empty(object);
  }
  segment.room = SegmentRoom(Bytes{0}, 0);
  eviction_idle = false;
}

Error Master::mount_disk(NodeId client, bool accepting, Time now) {
  (void)now;
  ClientState* c = state_->client(client);
  if (c == nullptr) return Error::SEGMENT_NOT_FOUND;
  if (c->disk_mounted) return Error::SEGMENT_ALREADY_EXISTS;
  c->disk_mounted = true;
  c->accepting = accepting;
  state_->eviction_idle = false;
  return Error::OK;
}

Error Master::drain_disk(NodeId client, Time now) {
  if (state_->client(client) == nullptr) return Error::SEGMENT_NOT_FOUND;
  state_->drop_disk(client, now);
  return Error::OK;
}

/// The holder's LOCAL_DISK replicas, mailboxes and promotion tasks end; each task is counted once (RC-25).
void Master::State::drop_disk(NodeId n, Time now) {
  ClientState& c = clients[index(n)];
  c.disk_mounted = false;
  c.accepting = false;
  c.offloads.clear();
  c.promotions.clear();
  for (Object& object : objects) {
    if (!object.live) continue;
    if (object.offload.live && object.offload.owner == n) end_offload(object);
    if (object.promotion.live && object.promotion.holder == n && !legacy.tasks_outlive_clients) {
      ++counters.promotion_cancelled;
      end_promotion(object, now, false);
    }
    if (object.on_disk && object.disk_holder == n) {
      object.on_disk = false;
      if (object.memory.empty() && !object.promotion.live) ++counters.objects_lost;
    }
    erase_if_empty(object);
  }
}

void Master::State::expire(NodeId n, Time now) {
  ClientState& c = clients[index(n)];
  drop_disk(n, now);
  if (c.segment != SegmentId::none) unmount(c.segment, now);
  c = ClientState{};
  ++counters.clients_expired;
}

/// Whatever is older than the release timeout is dropped, on the reaper's own clock (RC-23).
void Master::State::reap(Time now) {
  while (!timed.empty() && timed.front().start + settings.put_start_release_timeout <= now) {
    const TimedTask task = timed.front();
    timed.pop_front();
    Object& object = objects[task.slot];
    if (!object.live) continue;
    switch (task.kind) {
      case TaskKind::put:
        if (object.serial != task.serial) break;
        object.listed_running = false;
        if (!object.put_running) break;
        ++counters.puts_reaped;
        abort_put(object, now);
        erase_if_empty(object);
        break;
      case TaskKind::offload:
        if (!object.offload.live || object.offload.serial != task.serial) break;
        ++counters.offloads_reaped;
        end_offload(object);
        break;
      case TaskKind::promotion:
        if (!object.promotion.live || object.promotion.serial != task.serial) break;
        ++counters.promotion_expired;
        end_promotion(object, now, true);  // older than any write may be
        erase_if_empty(object);
        break;
    }
  }
  while (!parked.empty() && parked.begin()->first <= now) {
    free(parked.begin()->second);
    parked.erase(parked.begin());
  }
}

}  // namespace kvlift
