// The master's face: its own work by the clock, restart, observation.
#include "core/master.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "core/master_state.hpp"

namespace kvlift {

Master::Master(const MasterSettings& settings, const LegacySettings& legacy, const Policy& policy, std::uint64_t seed)
    : state_(std::make_unique<State>(settings, legacy, policy, seed)) {}
Master::~Master() = default;
Master::Master(const Master& other) : state_(std::make_unique<State>(*other.state_)) {}
Master& Master::operator=(const Master& other) {
  *state_ = *other.state_;
  return *this;
}
Master::Master(Master&&) noexcept = default;
Master& Master::operator=(Master&&) noexcept = default;

void Master::tick(Time now) {
  State& s = *state_;
  s.reap(now);
  for (std::uint32_t n = 0; n < s.clients.size(); ++n) {
    // A client is silent when strictly more than the TTL has passed since its last ping.
    if (s.clients[n].known && now - s.clients[n].last_ping > s.settings.client_ttl)
      s.expire(static_cast<NodeId>(n), now);
  }
  if (s.eviction_due()) s.evict(now);
  s.retry_candidates(now);
}

Time Master::next_tick(Time now) const {
  State& s = *state_;
  Time due = kNever;
  const auto at = [&due](Time t) { due = std::min(due, t); };
  if (!s.timed.empty()) at(s.timed.front().start + s.settings.put_start_release_timeout);
  if (!s.parked.empty()) at(s.parked.begin()->first);
  for (const ClientState& c : s.clients) {
    if (c.known && s.settings.client_ttl != kForever) at(c.last_ping + s.settings.client_ttl + nanoseconds(1));
  }
  if (!s.candidates_due.empty()) at(s.candidates_due.begin()->first);
  if (s.eviction_due()) {
    // A poll finds nothing until something changes or the next lease ends, so polls before that are left out.
    if (!s.eviction_idle) {
      at(now);
    } else if (const auto* top = s.first_candidate()) {
      at(std::max(now, top->stamp));
    }
  }
  if (due == kNever) return kNever;
  // The first point of the poll's grid that is not before `due` and lies after `now`.
  const std::int64_t period = s.settings.eviction_period.ns;
  const std::int64_t after_now = (now.ns / period + 1) * period;
  if (due.ns <= after_now) return {after_now};
  if (due.ns > kNever.ns - period) return due;
  return {(due.ns + period - 1) / period * period};
}

void Master::set_serving(bool serving) { state_->serving = serving; }

void Master::restart(bool from_snapshot, Time now) {
  State& s = *state_;
  if (!from_snapshot) {
    State fresh(s.settings, s.legacy, s.policy, 0);
    fresh.random = s.random;
    fresh.counters = s.counters;
    fresh.next_version = s.next_version;
    fresh.next_serial = s.next_serial;
    // Segment ids are not used again: a late transfer must not hit a new mount.
    fresh.segments.resize(s.segments.size());
    s = std::move(fresh);
    return;
  }
  for (Object& object : s.objects) {
    if (!object.live) continue;
    if (object.promotion.live) {
      ++s.counters.promotion_cancelled;
      s.end_promotion(object, now, false);
    }
    if (object.offload.live) s.end_offload(object);
    if (object.put_running) s.abort_put(object, now);
    object.listed_running = false;
    object.disk_references = 0;
    // A restored object would be the first victim; it gets one TTL of grace (RC-64).
    if (s.readable(object)) s.extend_lease(object, now + s.settings.kv_lease_ttl);
    s.erase_if_empty(object);
  }
  for (ClientState& c : s.clients) {
    c.offloads.clear();
    c.promotions.clear();
    c.last_ping = now;
  }
  s.candidates.clear();
  s.candidates_due.clear();
  s.timed.clear();
  s.sketch = {};
  s.need_eviction = false;
  s.eviction_idle = false;
}

// -- observation ------------------------------------------------------------------------------------------------

const MasterCounters& Master::counters() const { return state_->counters; }
std::int64_t Master::promotions_in_flight() const { return state_->promotions_in_flight; }
std::int64_t Master::object_count() const { return static_cast<std::int64_t>(state_->where.size()); }

bool Master::has_promotion_task(const ObjectKey& key) const {
  const Object* object = state_->find(key);
  return object != nullptr && object->promotion.live;
}

Time Master::lease_timeout(const ObjectKey& key) const {
  const Object* object = state_->find(key);
  return object == nullptr ? kLongAgo : object->lease_timeout;
}

DramUsage Master::dram(Time now) const {
  const State& s = *state_;
  DramUsage usage{s.capacity, s.allocated, {}, {}};
  for (const Slot slot : s.residents) {
    const Object& object = s.objects[slot];
    for (const MemoryReplica& r : object.memory) {
      const bool leased = now < object.lease_timeout;
      if (leased) usage.leased += r.at.size;
      if (leased || object.hard_pin || r.references > 0 || !r.complete) usage.unevictable += r.at.size;
    }
  }
  return usage;
}

std::string Master::check(Time now) const {
  const State& s = *state_;
  (void)now;
  std::int64_t tasks = 0;
  std::int64_t evictable = 0;
  std::int64_t held = 0;
  for (const Object& object : s.objects) {
    if (!object.live) continue;
    const auto fail = [&object](const char* what) {
      return std::string(what) + ", key " + std::to_string(object.key.key.low);
    };
    if (object.promotion.live) ++tasks;
    if (object.disk_references > (object.promotion.live ? 1 : 0)) return fail("I2: a source is pinned without a task");
    if (object.disk_references < 0) return fail("I2: a source is unpinned twice");
    std::int32_t pins = 0;
    int incomplete = 0;
    bool free_copy = false;
    for (const MemoryReplica& r : object.memory) {
      held += RangeAllocator::rounded(r.at.size);
      pins += r.references;
      incomplete += r.complete ? 0 : 1;
      free_copy = free_copy || (r.complete && r.references == 0);
      if (!s.segments[index(r.at.segment)].live) return fail("a replica on a segment that is gone");
    }
    if (pins != (object.offload.live ? 1 : 0)) return fail("I2: an offload's pin and its task disagree");
    if (incomplete > 0 && !object.put_running && !(object.promotion.live && object.promotion.allocated))
      return fail("I8: an incomplete replica that nobody will end");
    if (object.promotion.live && object.memory.size() > (object.promotion.allocated ? 1u : 0u))
      return fail("I1: a promotion beside another copy");
    if (object.memory.empty() && !object.on_disk && !object.promotion.live && !object.put_running)
      return fail("an object without a copy");
    if (object.evictable != (free_copy && !object.hard_pin)) return fail("the eviction base is wrong");
    if (object.evictable) ++evictable;
    if (object.evictable && object.candidate_order == 0) return fail("an evictable object is no candidate");
    if ((object.resident_at != kNoSlot) != !object.memory.empty()) return fail("the resident list is wrong");
  }
  if (tasks != s.promotions_in_flight) return "I2: tasks in flight and their count disagree";
  if (tasks > s.settings.promotion_queue_limit) return "I2: more tasks in flight than the cap";
  if (evictable != s.evictable_objects) return "the eviction base is miscounted";
  for (const auto& [until, at] : s.parked) held += RangeAllocator::rounded(at.size);
  std::int64_t used = 0;
  std::int64_t capacity = 0;
  for (const Segment& segment : s.segments) {
    if (!segment.live) continue;
    used += segment.room.used().value;
    capacity += segment.room.capacity().value;
    if (segment.room.used() > segment.room.capacity()) return "I8: more allocated than a segment has";
  }
  if (used != s.allocated.value || capacity != s.capacity.value) return "I8: totals and segments disagree";
  if (used != held) return "I8: allocated bytes and replicas + parked disagree";
  return {};
}

std::uint64_t Master::hash() const {
  const State& s = *state_;
  std::uint64_t h = 0;
  const auto add = [&h](std::uint64_t value) { h = mix64(h ^ value) + value; };
  for (const Object& object : s.objects) {
    if (!object.live) continue;
    add(hash_of(object.key));
    add(object.version);
    add(static_cast<std::uint64_t>(object.lease_timeout.ns));
    add(static_cast<std::uint64_t>(object.put_running) | static_cast<std::uint64_t>(object.on_disk) << 1 |
        static_cast<std::uint64_t>(object.promotion.live) << 2 |
        static_cast<std::uint64_t>(object.promotion.allocated) << 3 |
        static_cast<std::uint64_t>(object.offload.live) << 4);
    for (const MemoryReplica& r : object.memory) {
      add(static_cast<std::uint64_t>(r.at.segment) << 32 | static_cast<std::uint64_t>(r.complete));
      add(static_cast<std::uint64_t>(r.at.offset));
    }
    if (object.on_disk) add(static_cast<std::uint64_t>(object.disk_holder) << 32 | object.disk_epoch);
  }
  add(static_cast<std::uint64_t>(s.allocated.value));
  add(static_cast<std::uint64_t>(s.promotions_in_flight));
  return h;
}

}  // namespace kvlift
