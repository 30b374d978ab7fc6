#include "core/throttle_table.hpp"

#include <algorithm>
#include <bit>

#include "core/assert.hpp"

namespace kvlift {

std::string_view to_string(ThrottleState state) {
  switch (state) {
    case ThrottleState::triggered:
      return "triggered";
    case ThrottleState::in_flight:
      return "in_flight";
    case ThrottleState::completed:
      return "completed";
    case ThrottleState::failed:
      return "failed";
    case ThrottleState::already_resident:
      return "already_resident";
    case ThrottleState::delegated:
      return "delegated";
  }
  return "unknown";
}

ThrottleCounters& ThrottleCounters::operator+=(const ThrottleCounters& other) {
  reserved += other.reserved;
  deduplicated += other.deduplicated;
  refused_full += other.refused_full;
  expired_reclaimed += other.expired_reclaimed;
  stale_results += other.stale_results;
  disallowed_results += other.disallowed_results;
  waiters_dropped += other.waiters_dropped;
  cooldown_entered += other.cooldown_entered;
  return *this;
}

ThrottleBatch::ThrottleBatch(std::span<const ObjectKey> batch_keys, std::size_t shard_mask) : keys(batch_keys) {
  KVLIFT_ASSERT(keys.size() <= kMax);
  begin.fill(0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = hash_of(keys[i]);
    granted[i] = Generation::none;
    ++begin[((hashes[i] >> 60) & shard_mask) + 1];
  }
  for (std::size_t s = 0; s < kShards; ++s) begin[s + 1] = static_cast<std::uint8_t>(begin[s + 1] + begin[s]);
  std::array<std::uint8_t, kShards + 1> next = begin;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    order[next[(hashes[i] >> 60) & shard_mask]++] = static_cast<std::uint8_t>(i);
  }
}

ThrottleTable::ThrottleTable(const ThrottleSettings& settings)
    : windows_{settings.live_max, settings.dedup_ttl, settings.cooldown},
      entries_max_(settings.entries_max),
      waiters_max_(settings.waiters_max) {
  KVLIFT_ASSERT(settings.live_max.ns > 0);
  KVLIFT_ASSERT(settings.entries_max > 0 && settings.entries_max < kNone);
  KVLIFT_ASSERT(settings.waiters_max < kNone);
}

// --- windows

ThrottleTable::Window ThrottleTable::window_of(ThrottleState state) {
  if (is_live(state)) return kLive;
  return state == ThrottleState::failed ? kFailed : kHealthy;
}

Time ThrottleTable::end_of(ThrottleState state, Time since) const {
  const Duration window = windows_[window_of(state)];
  return window.ns <= 0 ? kLongAgo : since + window;
}

/// For a triggered entry. At the end of time the sum saturated; the report's own time is the best that is known.
Time ThrottleTable::triggered_at(Slot slot, Time now) const {
  const Time until = entries_[slot].until;
  return until == kNever ? now : until - windows_[kLive];
}

// --- hash index

std::size_t ThrottleTable::bucket_of(std::uint64_t hash) const {
  const std::size_t mask = std::bit_ceil(bucket_count_) - 1;
  const std::size_t bucket = hash & mask;
  return bucket < bucket_count_ ? bucket : bucket & (mask >> 1);
}

ThrottleTable::Slot ThrottleTable::find(const ObjectKey& key, std::uint64_t hash) const {
  if (size_ == 0) return kNone;
  Slot slot = buckets_[bucket_of(hash)];
  while (slot != kNone && !is(entries_[slot], key)) slot = entries_[slot].chain;
  return slot;
}

ThrottleTable::Slot ThrottleTable::find_current(const ObjectKey& key, std::uint64_t hash, Time now) const {
  const Slot slot = find(key, hash);
  return slot != kNone && !over(entries_[slot], now) ? slot : kNone;
}

ThrottleTable::Slot ThrottleTable::find_reported(const ObjectKey& key, std::uint64_t hash, Generation generation,
                                                 Time now) {
  const Slot slot = find_current(key, hash, now);
  if (slot != kNone && rounds_[slot].generation == generation) return slot;
  ++counters_.stale_results;
  return kNone;
}

// Adds one bucket and moves to it what belongs there from the bucket that stood in for it so far.
void ThrottleTable::split_bucket() {
  if (bucket_count_ == buckets_.capacity()) buckets_.grow();
  const std::size_t added = bucket_count_++;
  buckets_[added] = kNone;
  if (added == 0) return;
  const std::size_t mask = std::bit_ceil(bucket_count_) - 1;
  Slot* link = &buckets_[added & (mask >> 1)];
  while (*link != kNone) {
    Entry& entry = entries_[*link];
    const ObjectKey key{entry.key, entry.tenant};
    if ((hash_of(key) & mask) != added) {
      link = &entry.chain;
      continue;
    }
    const Slot moved = *link;
    *link = entry.chain;
    entry.chain = buckets_[added];
    buckets_[added] = moved;
  }
}

// --- queues

void ThrottleTable::enter(Slot slot, ThrottleState state, Time since) {
  entries_[slot].until = end_of(state, since);
  Round& round = rounds_[slot];
  Queue& queue = queues_[window_of(state)];
  round.state = state;
  round.older = queue.newest;
  round.newer = kNone;
  (queue.newest == kNone ? queue.oldest : rounds_[queue.newest].newer) = slot;
  queue.newest = slot;
}

void ThrottleTable::leave(Slot slot) {
  const Round& round = rounds_[slot];
  Queue& queue = queues_[window_of(round.state)];
  (round.older == kNone ? queue.oldest : rounds_[round.older].newer) = round.newer;
  (round.newer == kNone ? queue.newest : rounds_[round.newer].older) = round.older;
}

// --- entries

ThrottleTable::Slot ThrottleTable::insert(const ObjectKey& key, std::uint64_t hash, Time now) {
  reclaim(now);
  if (size_ == entries_max_) return kNone;
  while (bucket_count_ < kBucketsPerEntry * (size_ + 1)) split_bucket();
  Slot slot = free_entry_;
  if (slot != kNone) {
    free_entry_ = entries_[slot].chain;
  } else {
    if (entries_used_ == entries_.capacity()) {
      entries_.grow();
      rounds_.grow();
    }
    slot = static_cast<Slot>(entries_used_++);
  }
  Entry& entry = entries_[slot];
  Slot& bucket = buckets_[bucket_of(hash)];
  entry.key = key.key;
  entry.tenant = key.tenant;
  entry.chain = bucket;
  bucket = slot;
  rounds_[slot].waiters = kNone;
  ++size_;
  return slot;
}

void ThrottleTable::erase(Slot slot, std::uint64_t hash) {
  leave(slot);
  Slot* link = &buckets_[bucket_of(hash)];
  while (*link != slot) link = &entries_[*link].chain;
  *link = entries_[slot].chain;
  entries_[slot].chain = free_entry_;
  free_entry_ = slot;
  --size_;
}

void ThrottleTable::reclaim(Time now) {
  int budget = kReclaimed;
  for (const Queue& queue : queues_) {
    while (budget > 0 && queue.oldest != kNone && over(entries_[queue.oldest], now)) {
      const Entry& entry = entries_[queue.oldest];
      drop_waiters(rounds_[queue.oldest]);
      erase(queue.oldest, hash_of({entry.key, entry.tenant}));
      ++counters_.expired_reclaimed;
      --budget;
    }
  }
}

Generation ThrottleTable::grant(const ObjectKey& key, std::uint64_t hash, Time now, ReserveTally& tally) {
  Slot slot = find(key, hash);
  if (slot != kNone && !over(entries_[slot], now)) {
    if (windows_[kHealthy].ns > 0 || rounds_[slot].state != ThrottleState::triggered) {
      ++tally.deduplicated;
      return Generation::none;
    }
    leave(slot);  // granted again under its generation: deduplication is off
  } else {
    if (slot != kNone) {
      drop_waiters(rounds_[slot]);
      leave(slot);
      ++counters_.expired_reclaimed;
    } else if (slot = insert(key, hash, now); slot == kNone) {
      ++tally.refused_full;
      return Generation::none;
    }
    rounds_[slot].generation = static_cast<Generation>(++last_generation_);
  }
  enter(slot, ThrottleState::triggered, now);
  ++tally.granted;
  return rounds_[slot].generation;
}

ReserveTally ThrottleTable::reserve(ThrottleBatch& batch, std::span<const std::uint8_t> chosen, Time now) {
  // Fetch what all keys will touch before looking at the first: one wait for memory instead of one a key.
  if (size_ > 0) {
    for (const std::uint8_t i : chosen) __builtin_prefetch(&buckets_[bucket_of(batch.hashes[i])]);
    for (const std::uint8_t i : chosen) {
      const Slot slot = buckets_[bucket_of(batch.hashes[i])];
      if (slot != kNone) __builtin_prefetch(&entries_[slot]);
    }
  }
  ReserveTally tally;
  for (const std::uint8_t i : chosen) batch.granted[i] = grant(batch.keys[i], batch.hashes[i], now, tally);
  counters_.reserved += tally.granted;
  counters_.deduplicated += tally.deduplicated;
  counters_.refused_full += tally.refused_full;
  return tally;
}

bool ThrottleTable::report(const ObjectKey& key, std::uint64_t hash, Generation generation, ThrottleState state,
                           Time now, std::vector<WaiterId>* woken) {
  const Slot slot = find_reported(key, hash, generation, now);
  if (slot == kNone) return false;
  Round& round = rounds_[slot];
  if (!may_follow(round.state, state)) {
    ++counters_.disallowed_results;
    return false;
  }
  leave(slot);
  if (woken != nullptr) wake(round, *woken);
  // These two ended without work of their own: their window counts from the trigger.
  const bool no_work = state == ThrottleState::already_resident || state == ThrottleState::delegated;
  enter(slot, state, no_work ? triggered_at(slot, now) : now);
  return true;
}

bool ThrottleTable::release(const ObjectKey& key, std::uint64_t hash, Generation generation, Time now,
                            std::vector<WaiterId>& woken) {
  const Slot slot = find_reported(key, hash, generation, now);
  if (slot == kNone) return false;
  if (!is_live(rounds_[slot].state)) {
    ++counters_.disallowed_results;
    return false;
  }
  wake(rounds_[slot], woken);
  erase(slot, hash);
  return true;
}

std::optional<ThrottleState> ThrottleTable::state_of(const ObjectKey& key, std::uint64_t hash, Time now) const {
  const Slot slot = find_current(key, hash, now);
  if (slot == kNone) return std::nullopt;
  return rounds_[slot].state;
}

// --- waiters

WaitAnswer ThrottleTable::wait(const ObjectKey& key, std::uint64_t hash, WaiterId waiter, Time now) {
  const Slot found = find_current(key, hash, now);
  if (found == kNone) return WaitAnswer::not_live;
  Round& round = rounds_[found];
  if (round.state == ThrottleState::completed) return WaitAnswer::completed;
  if (round.state != ThrottleState::in_flight) return WaitAnswer::not_live;
  for (Slot s = round.waiters; s != kNone; s = waiters_[s].next) {
    if (waiters_[s].id == waiter) return WaitAnswer::waiting;
  }
  Slot slot = free_waiter_;
  if (slot != kNone) {
    free_waiter_ = waiters_[slot].next;
  } else {
    if (waiters_used_ == waiters_max_) return WaitAnswer::full;
    if (waiters_used_ == waiters_.capacity()) waiters_.grow();
    slot = static_cast<Slot>(waiters_used_++);
  }
  waiters_[slot] = {waiter, round.waiters};
  round.waiters = slot;
  return WaitAnswer::waiting;
}

bool ThrottleTable::cancel_wait(const ObjectKey& key, std::uint64_t hash, WaiterId waiter) {
  const Slot found = find(key, hash);
  if (found == kNone) return false;
  for (Slot* link = &rounds_[found].waiters; *link != kNone; link = &waiters_[*link].next) {
    if (waiters_[*link].id != waiter) continue;
    const Slot slot = *link;
    *link = waiters_[slot].next;
    free_waiter(slot);
    return true;
  }
  return false;
}

void ThrottleTable::free_waiter(Slot slot) {
  waiters_[slot].next = free_waiter_;
  free_waiter_ = slot;
}

void ThrottleTable::wake(Round& round, std::vector<WaiterId>& woken) {
  const auto first = static_cast<std::ptrdiff_t>(woken.size());
  while (round.waiters != kNone) {
    const Slot slot = round.waiters;
    woken.push_back(waiters_[slot].id);
    round.waiters = waiters_[slot].next;
    free_waiter(slot);
  }
  std::reverse(woken.begin() + first, woken.end());
}

void ThrottleTable::drop_waiters(Round& round) {
  while (round.waiters != kNone) {
    const Slot slot = round.waiters;
    round.waiters = waiters_[slot].next;
    free_waiter(slot);
    ++counters_.waiters_dropped;
  }
}

// --- whole table

std::size_t ThrottleTable::memory_bytes() const {
  return entries_.memory_bytes() + rounds_.memory_bytes() + buckets_.memory_bytes() + waiters_.memory_bytes();
}

std::uint64_t ThrottleTable::hash() const {
  std::uint64_t sum = mix64(last_generation_ + 1);
  for (const Queue& queue : queues_) {
    for (Slot slot = queue.oldest; slot != kNone; slot = rounds_[slot].newer) {
      const Entry& entry = entries_[slot];
      const Round& round = rounds_[slot];
      std::uint64_t h = hash_of({entry.key, entry.tenant});
      h = mix64(h ^ static_cast<std::uint64_t>(entry.until.ns));
      h = mix64(h ^ static_cast<std::uint64_t>(round.generation));
      h = mix64(h + static_cast<std::uint64_t>(round.state));
      for (Slot w = round.waiters; w != kNone; w = waiters_[w].next) {
        h = mix64(h + static_cast<std::uint64_t>(waiters_[w].id) + 1);
      }
      sum += mix64(h);
    }
  }
  return sum;
}

}  // namespace kvlift
