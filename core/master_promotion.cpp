// One task a key and one cap for every kind of promotion (RFC #4271 component 2; store-mechanics 2.9 to 2.13).
#include <algorithm>

#include "core/assert.hpp"
#include "core/master_state.hpp"

namespace kvlift {

namespace {

std::size_t staged_replica(const Object& object) {
  for (std::size_t r = 0; r < object.memory.size(); ++r) {
    if (!object.memory[r].complete) return r;
  }
  return object.memory.size();
}

void begin_promotion(Master::State& s, Object& object, NodeId holder, bool from_prefetch, Time now);
void queue_for_holder(Master::State& s, Object& object);

/// Such a lease is spent, or dangles, when the promotion is late or fails: that is the design (#3417).
void lease_at_enqueue(Master::State& s, Object& object, Time now) {
  if (s.policy.lease != Policy::LeaseMoment::enqueue) return;
  s.grant_lease(object, now);
  object.promotion.leased = true;
}

}  // namespace

Error Master::register_prefetch_task(NodeId caller, const ObjectKey& key, Time now, PromotionTicket ticket) {
  State& s = *state_;
  const auto refuse = [](std::uint64_t& count, Error error) {
    ++count;
    return error;
  };
  MasterCounters& n = s.counters;
  if (!s.serving) return refuse(n.prefetch_unavailable, Error::UNAVAILABLE_IN_CURRENT_STATUS);
  Object* object = s.find(key);
  if (object == nullptr) return refuse(n.prefetch_not_found, Error::OBJECT_NOT_FOUND);
  if (object->put_running || object->listed_running) return refuse(n.prefetch_put_running, Error::REPLICA_IS_NOT_READY);
  if (!object->memory.empty() || object->promotion.live) {
    ++n.prefetch_already;
    // #2646 answers OK for a key that DRAM has: no task is made, and the allocation is refused.
    const bool accepted = s.policy.resident == Policy::Resident::accepted && !object->promotion.live;
    return accepted ? Error::OK : Error::PROMOTION_ALREADY_EXISTS;
  }
  if (s.policy.gate_watermark && s.used_ratio() >= s.settings.eviction_high_watermark_ratio)
    return refuse(n.prefetch_watermark, Error::NO_AVAILABLE_HANDLE);
  if (!object->on_disk) return refuse(n.prefetch_no_source, Error::REPLICA_IS_NOT_READY);
  if (object->disk_holder != caller) return refuse(n.prefetch_not_holder, Error::INVALID_PARAMS);
  if (s.promotions_in_flight >= s.settings.promotion_queue_limit)
    return refuse(n.prefetch_cap, Error::KEYS_ULTRA_LIMIT);
  begin_promotion(s, *object, caller, true, now);
  object->promotion.ticket = ticket;
  ++n.prefetch_registered;
  lease_at_enqueue(s, *object, now);
  return Error::OK;
}

Error Master::prefetch_to_memory(const ObjectKey& key, Time now) {
  State& s = *state_;
  const Object* object = s.find(key);
  const NodeId holder = object == nullptr ? NodeId::none : object->disk_holder;
  const ClientState* client = s.client(holder);
  if (object != nullptr && object->on_disk && (client == nullptr || !client->disk_mounted)) {
    ++s.counters.prefetch_no_source;
    return Error::REPLICA_IS_NOT_READY;
  }
  const Error refused = register_prefetch_task(holder, key, now);
  if (refused != Error::OK) return refused;
  queue_for_holder(s, *s.find(key));
  return Error::OK;
}

Result<Allocation> Master::promotion_alloc_start(NodeId caller, const ObjectKey& key, Bytes size, Time now,
                                                 PromotionTicket ticket) {
  State& s = *state_;
  Object* object = s.find(key);
  if (object == nullptr) return {Error::OBJECT_NOT_FOUND, {}};
  if (object->put_running) return {Error::REPLICA_IS_NOT_READY, {}};
  PromotionState& task = object->promotion;
  if (!task.live || !task.is(ticket)) return {Error::REPLICA_IS_NOT_READY, {}};
  if (task.holder != caller) return {Error::INVALID_PARAMS, {}};
  if (size != task.size) return {Error::INVALID_PARAMS, {}};
  if (!object->memory.empty() || task.allocated) return {Error::REPLICA_IS_NOT_READY, {}};
  const auto placed = s.allocate_for_promotion(size, now);
  if (!placed.ok()) {
    ++s.counters.promotion_no_handle;  // does not ask for eviction: promotion yields (section 2.6)
    return placed;
  }
  object->memory.push_back({placed.value});
  task.allocated = true;
  task.start = now;  // the reaper measures the transfer from here
  task.serial = s.begin_timed(State::TaskKind::promotion, s.slot_of(*object), now);
  s.refresh(*object);
  ++s.counters.promotion_allocated;
  return placed;
}

Error Master::notify_promotion_success(NodeId caller, const ObjectKey& key, Time now, PromotionTicket ticket) {
  State& s = *state_;
  Object* object = s.find(key);
  if (object == nullptr) return Error::OBJECT_NOT_FOUND;
  PromotionState& task = object->promotion;
  if (!task.live || !task.is(ticket) || !task.allocated) return Error::REPLICA_IS_NOT_READY;
  if (task.holder != caller) return Error::INVALID_PARAMS;
  const std::size_t staged = staged_replica(*object);
  if (staged == object->memory.size()) return Error::REPLICA_IS_NOT_READY;  // its segment went away
  object->memory[staged].complete = true;
  const bool from_prefetch = task.from_prefetch;
  task.leased = false;  // it has found its copy
  ++s.counters.promotion_committed;
  if (object->memory.size() > 1) ++s.counters.promotion_doubled;
  s.counters.bytes_promoted += static_cast<std::uint64_t>(task.size.value);
  s.end_promotion(*object, now, true);
  // Without a lease the copy would be the next victim of a full pool (RC-30); on-hit tasks never had one.
  if (from_prefetch && s.policy.lease == Policy::LeaseMoment::commit) s.grant_lease(*object, now);
  object->promoted_unused = true;
  const Allocation& at = object->memory[staged].at;
  if (s.policy.dram == Policy::DramSource::transit_buffer &&
      s.segments[index(at.segment)].room.region_of(at.offset) == Region::reserved)
    s.buffered.emplace_back(s.slot_of(*object), at);
  return Error::OK;
}

Error Master::notify_promotion_failure(NodeId caller, const ObjectKey& key, Time now, PromotionTicket ticket) {
  State& s = *state_;
  Object* object = s.find(key);
  if (object == nullptr || !object->promotion.live || !object->promotion.is(ticket)) return Error::OK;
  if (object->promotion.holder != caller) return Error::INVALID_PARAMS;
  ++s.counters.promotion_failed;
  s.end_promotion(*object, now, true);
  s.erase_if_empty(*object);
  return Error::OK;
}

namespace {

void begin_promotion(Master::State& s, Object& object, NodeId holder, bool from_prefetch, Time now) {
  ++object.disk_references;
  ++s.promotions_in_flight;
  object.promotion = {};
  object.promotion.live = true;
  object.promotion.from_prefetch = from_prefetch;
  object.promotion.holder = holder;
  object.promotion.size = object.size;
  object.promotion.start = now;
  object.promotion.serial = s.begin_timed(Master::State::TaskKind::promotion, s.slot_of(object), now);
}

/// Into the mailbox of its holder, which is a known client; the ticket stands apart from the holders' own.
void queue_for_holder(Master::State& s, Object& object) {
  object.promotion.ticket = static_cast<PromotionTicket>(1ULL << 63 | s.next_version++);
  s.client(object.promotion.holder)->promotions.emplace_back(s.slot_of(object), object.promotion.serial);
}

}  // namespace

/// Ends the task: source unpinned, slot free, an incomplete replica erased. Called exactly once a task, whatever
/// the end was. A staged replica whose writer may still write is parked as long as a write can live.
void Master::State::end_promotion(Object& object, Time now, bool writer_is_done) {
  KVLIFT_ASSERT(object.promotion.live);
  if (object.disk_references > 0) --object.disk_references;
  if (object.promotion.leased) ++counters.leases_dangling;
  --promotions_in_flight;
  KVLIFT_ASSERT(promotions_in_flight >= 0);
  if (object.promotion.allocated) {
    const std::size_t staged = staged_replica(object);
    if (staged < object.memory.size()) {
      if (writer_is_done) {
        drop_memory(object, staged);
      } else {
        park(object.memory[staged].at, std::max(now, object.promotion.start + settings.put_start_release_timeout));
        object.memory.erase(object.memory.begin() + static_cast<std::ptrdiff_t>(staged));
      }
    }
  }
  object.promotion = {};
  refresh(object);
}

// -- promotion-on-hit -----------------------------------------------------------------------------------------

/// The gates in their order (section 2.9); the sketch counts the hit whatever the later ones say.
Error Master::State::admit_on_hit(const ObjectKey& key, Time now, bool retry) {
  const bool by_policy = policy.trigger == Policy::Trigger::on_hit;
  if (!by_policy || policy.gate_frequency) {
    const auto threshold = std::clamp<std::int64_t>(settings.promotion_admission_threshold, 1, 255);
    if (sketch.increment(key) < threshold) {
      ++counters.on_hit_frequency;
      return Error::INVALID_PARAMS;
    }
  }
  if ((!by_policy || policy.gate_watermark) && used_ratio() >= settings.eviction_high_watermark_ratio) {
    ++counters.on_hit_watermark;
    note_candidate(key, now, retry);
    return Error::NO_AVAILABLE_HANDLE;
  }
  Object* object = find(key);
  if (object == nullptr) {
    ++counters.on_hit_not_found;
    return Error::OBJECT_NOT_FOUND;
  }
  if (object->put_running || object->promotion.live) {
    ++counters.on_hit_in_flight;
    return Error::PROMOTION_ALREADY_EXISTS;
  }
  if (!object->memory.empty()) {
    ++counters.on_hit_memory_present;
    return Error::PROMOTION_ALREADY_EXISTS;
  }
  ClientState* holder = object->on_disk ? client(object->disk_holder) : nullptr;
  if (holder == nullptr || !holder->disk_mounted) {
    ++counters.on_hit_no_source;
    return Error::REPLICA_IS_NOT_READY;
  }
  if (promotions_in_flight >= settings.promotion_queue_limit) {
    ++counters.on_hit_cap;
    note_candidate(key, now, retry);
    return Error::KEYS_ULTRA_LIMIT;
  }
  begin_promotion(*this, *object, object->disk_holder, false, now);
  queue_for_holder(*this, *object);
  ++counters.on_hit_queued;
  return Error::OK;
}

/// A refusal that may pass is tried again (RC-05). A new refusal outside a retry starts its count anew.
void Master::State::note_candidate(const ObjectKey& key, Time now, bool retry) {
  if (retry) return;
  const bool wanted = policy.trigger == Policy::Trigger::on_hit ? policy.retry_candidates : true;
  if (!wanted || find(key) == nullptr) return;
  const auto at = candidates.find(key);
  if (at == candidates.end() && static_cast<std::int64_t>(candidates.size()) >= settings.retry_candidate_limit) return;
  if (at != candidates.end()) {
    const auto [first, last] = candidates_due.equal_range(at->second.due);
    for (auto due = first; due != last; ++due) {
      if (due->second == key) {
        candidates_due.erase(due);
        break;
      }
    }
  }
  candidates[key] = {now, now, 0};
  candidates_due.emplace(now, key);
}

void Master::State::retry_candidates(Time now) {
  constexpr int kPerRound = 128;  // store-mechanics section 7, fixed in code
  for (int n = 0; n < kPerRound && !candidates_due.empty() && candidates_due.begin()->first <= now; ++n) {
    const ObjectKey key = candidates_due.begin()->second;
    candidates_due.erase(candidates_due.begin());
    RetryCandidate& candidate = candidates.at(key);
    if (candidate.tries >= settings.retry_candidate_tries ||
        now - candidate.first_seen > settings.retry_candidate_life) {
      ++counters.on_hit_given_up;
      candidates.erase(key);
      continue;
    }
    ++candidate.tries;
    ++counters.on_hit_retried;
    const Error error = admit_on_hit(key, now, true);
    if (error != Error::NO_AVAILABLE_HANDLE && error != Error::KEYS_ULTRA_LIMIT) {
      candidates.erase(key);
      continue;
    }
    // 10 ms doubled for each try; capped before the shift leaves the type.
    const std::int64_t doubled = milliseconds(10).ns << std::min<std::int64_t>(candidate.tries - 1, 32);
    const Duration backoff{std::min(doubled, settings.retry_backoff_max.ns)};
    candidate.due = now + backoff;
    candidates_due.emplace(candidate.due, key);
  }
}

void Master::pull_promotions(NodeId holder, Time now, std::vector<PromotionTask>& out) {
  State& s = *state_;
  ClientState* client = s.client(holder);
  if (client == nullptr) return;
  constexpr std::int64_t kUpperBound = 1024;  // a hand-out that no heartbeat can starve on (RC-02, RC-04)
  const std::int64_t asked = s.policy.pull_batch > 0 ? s.policy.pull_batch : s.settings.promotion_max_per_heartbeat;
  const auto limit = std::clamp<std::int64_t>(asked, 1, kUpperBound);
  for (std::int64_t n = 0; n < limit && !client->promotions.empty();) {
    const auto [slot, serial] = client->promotions.front();
    client->promotions.pop_front();
    Object& object = s.objects[slot];
    if (!object.live || !object.promotion.live || object.promotion.serial != serial) continue;
    // All tasks have the same budget, so the oldest has the earliest deadline and the mailbox is in that order.
    if (s.policy.task_budget.ns > 0 && now > object.promotion.start + s.policy.task_budget) {
      ++s.counters.promotion_late;
      s.end_promotion(object, now, true);
      s.erase_if_empty(object);
      continue;
    }
    out.push_back({object.key, object.promotion.size, object.promotion.ticket});
    ++n;
  }
}

}  // namespace kvlift
