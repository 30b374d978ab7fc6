// Prefetch throttle: decides, on the probe path, which keys are worth a promotion now (RFC #4271, component 1).
//
// Assumes that `now` comes from one clock and that every granted key is reported on: it starts and ends, or it is
// released. Guarantees that a key is granted to one caller a window; that a probe costs O(batch) whatever the
// table holds; that memory is bounded. States and windows: throttle_types.hpp.
//
// Sixteen shards, each with its own lock, so that probes of several threads pass each other; a batch takes each lock
// once. `Mutex` needs lock() and unlock(). With NoMutex the throttle is a plain value that can be copied and hashed;
// the real driver supplies a mutex, best one that spins before it sleeps: it is held for less than a microsecond. A
// table for fewer than kShardedFrom keys is one shard, since sixteen small shares would fill unevenly.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/throttle_table.hpp"
#include "core/throttle_types.hpp"

namespace kvlift {

/// The lock of a program with one thread.
struct NoMutex {
  void lock() {}
  void unlock() {}
};

template <class Mutex = NoMutex>
class Throttle {
 public:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kShardedFrom = 4096;

  explicit Throttle(const ThrottleSettings& settings);

  /// Appends the keys that the caller shall promote, in batch order. Look at in_cooldown() first: a cooldown
  /// suppresses a probe before it marks keys, so that the next one may trigger them.
  ReserveTally reserve(std::span<const ObjectKey> keys, Time now, std::vector<Reservation>& out);

  // Reports on a granted key. True when applied; false when the generation is not the key's current one or the
  // move is not allowed: the report is dropped and counted, and a job that may not start skips the key.
  // Waiters that the move frees are appended to `woken`, in the order in which they came.
  bool mark_in_flight(const ObjectKey& key, Generation generation, Time now) {
    return report(key, generation, ThrottleState::in_flight, now, nullptr);
  }
  bool mark_completed(const ObjectKey& key, Generation generation, Time now, std::vector<WaiterId>& woken) {
    return report(key, generation, ThrottleState::completed, now, &woken);
  }
  bool mark_failed(const ObjectKey& key, Generation generation, Time now, std::vector<WaiterId>& woken) {
    return report(key, generation, ThrottleState::failed, now, &woken);
  }
  bool mark_already_resident(const ObjectKey& key, Generation generation, Time now) {
    return report(key, generation, ThrottleState::already_resident, now, nullptr);
  }
  /// A remote holder was asked, or the master answered PROMOTION_ALREADY_EXISTS (RC-19).
  bool mark_delegated(const ObjectKey& key, Generation generation, Time now) {
    return report(key, generation, ThrottleState::delegated, now, nullptr);
  }
  /// Forgets a granted key whose job was dropped or not registered under pressure, so that the next probe outside
  /// a cooldown may trigger it (RC-14).
  bool release(const ObjectKey& key, Generation generation, Time now, std::vector<WaiterId>& woken) {
    return locked(*this, key,
                  [&](auto& table, std::uint64_t hash) { return table.release(key, hash, generation, now, woken); });
  }

  /// The key's state; empty when it is unknown or its window is over.
  std::optional<ThrottleState> state_of(const ObjectKey& key, Time now) const {
    return locked(*this, key, [&](auto& table, std::uint64_t hash) { return table.state_of(key, hash, now); });
  }

  /// Registers a waiter on a key in flight; a second time is the same wait. The waiter keeps its own deadline,
  /// shorter than live_max, and calls cancel_wait when it passes.
  [[nodiscard]] WaitAnswer wait(const ObjectKey& key, WaiterId waiter, Time now) {
    return locked(*this, key, [&](auto& table, std::uint64_t hash) { return table.wait(key, hash, waiter, now); });
  }
  /// True when the wait was open; afterwards no call names the waiter for this key.
  bool cancel_wait(const ObjectKey& key, WaiterId waiter) {
    return locked(*this, key, [&](auto& table, std::uint64_t hash) { return table.cancel_wait(key, hash, waiter); });
  }

  /// DRAM had no room: the whole process yields until now + cooldown. Entering again extends it.
  void enter_cooldown(Time now);
  bool in_cooldown(Time now) const;

  ThrottleCounters counters() const;
  std::size_t size() const;          ///< keys remembered, those included whose window is over
  std::size_t memory_bytes() const;  ///< allocated for them
  /// Over keys, states, times, generations and waits; independent of where they are stored.
  std::uint64_t hash() const;

 private:
  struct alignas(64) Shard {
    [[no_unique_address]] mutable Mutex mutex;
    ThrottleTable table;
  };
  struct Guard {
    explicit Guard(Mutex& m) : mutex(m) { mutex.lock(); }
    ~Guard() { mutex.unlock(); }
    Guard(const Guard&) = delete;
    Mutex& mutex;
  };

  template <class Self, class Call>
  static auto locked(Self& self, const ObjectKey& key, Call call) {
    const std::uint64_t hash = hash_of(key);
    auto& shard = self.shards_[(hash >> 60) & self.shard_mask_];
    const Guard guard(shard.mutex);
    return call(shard.table, hash);
  }
  bool report(const ObjectKey& key, Generation generation, ThrottleState state, Time now,
              std::vector<WaiterId>* woken) {
    return locked(*this, key, [&](auto& table, std::uint64_t hash) {
      return table.report(key, hash, generation, state, now, woken);
    });
  }
  template <class Visit>
  void for_each_table(Visit visit) const;

  std::array<Shard, kShards> shards_;
  std::size_t shard_mask_ = 0;
  Duration cooldown_;
  // Touched through atomic_ref only: plain members keep the throttle copyable.
  mutable std::int64_t cooldown_until_ns_ = kLongAgo.ns;
  mutable std::uint64_t cooldown_entered_ = 0;
};

using PrefetchThrottle = Throttle<NoMutex>;

template <class Mutex>
Throttle<Mutex>::Throttle(const ThrottleSettings& settings)
    : shard_mask_(settings.entries_max < kShardedFrom ? 0 : kShards - 1), cooldown_(settings.cooldown) {
  ThrottleSettings share = settings;
  const std::size_t shards = shard_mask_ + 1;
  share.entries_max = settings.entries_max / shards;
  share.waiters_max = (settings.waiters_max + shards - 1) / shards;
  for (std::size_t s = 0; s <= shard_mask_; ++s) shards_[s].table = ThrottleTable(share);
}

template <class Mutex>
ReserveTally Throttle<Mutex>::reserve(std::span<const ObjectKey> keys, Time now, std::vector<Reservation>& out) {
  ReserveTally total;
  for (std::size_t base = 0; base < keys.size(); base += ThrottleBatch::kMax) {
    ThrottleBatch batch(keys.subspan(base, std::min(ThrottleBatch::kMax, keys.size() - base)), shard_mask_);
    // Each batch begins at a shard of its own, so that threads do not queue up behind each other at shard 0.
    const std::size_t first = batch.hashes[0] >> 60;
    for (std::size_t s = 0; s <= shard_mask_; ++s) {
      const std::size_t chosen = (first + s) & shard_mask_;
      if (batch.of_shard(chosen).empty()) continue;
      __builtin_prefetch(&shards_[(chosen + 1) & shard_mask_], 1);  // the next lock: another core may own its line
      const Guard guard(shards_[chosen].mutex);
      const ReserveTally tally = shards_[chosen].table.reserve(batch, batch.of_shard(chosen), now);
      total.granted += tally.granted;
      total.deduplicated += tally.deduplicated;
      total.refused_full += tally.refused_full;
    }
    if (total.granted == 0) continue;
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      if (batch.granted[i] != Generation::none) out.push_back({batch.keys[i], base + i, batch.granted[i]});
    }
  }
  return total;
}

template <class Mutex>
void Throttle<Mutex>::enter_cooldown(Time now) {
  if (cooldown_.ns <= 0) return;
  const std::int64_t until = (now + cooldown_).ns;
  const std::atomic_ref<std::int64_t> current(cooldown_until_ns_);
  std::int64_t seen = current.load();
  while (seen < until && !current.compare_exchange_weak(seen, until)) {
  }
  std::atomic_ref<std::uint64_t>(cooldown_entered_).fetch_add(1);
}

template <class Mutex>
bool Throttle<Mutex>::in_cooldown(Time now) const {
  return now.ns < std::atomic_ref<std::int64_t>(cooldown_until_ns_).load();
}

template <class Mutex>
template <class Visit>
void Throttle<Mutex>::for_each_table(Visit visit) const {
  for (std::size_t s = 0; s <= shard_mask_; ++s) {
    const Guard guard(shards_[s].mutex);
    visit(shards_[s].table);
  }
}

template <class Mutex>
ThrottleCounters Throttle<Mutex>::counters() const {
  ThrottleCounters sum;
  sum.cooldown_entered = std::atomic_ref<std::uint64_t>(cooldown_entered_).load();
  for_each_table([&](const ThrottleTable& table) { sum += table.counters(); });
  return sum;
}

template <class Mutex>
std::size_t Throttle<Mutex>::size() const {
  std::size_t sum = 0;
  for_each_table([&](const ThrottleTable& table) { sum += table.size(); });
  return sum;
}

template <class Mutex>
std::size_t Throttle<Mutex>::memory_bytes() const {
  std::size_t sum = 0;
  for_each_table([&](const ThrottleTable& table) { sum += table.memory_bytes(); });
  return sum;
}

template <class Mutex>
std::uint64_t Throttle<Mutex>::hash() const {
  std::uint64_t sum = mix64(static_cast<std::uint64_t>(std::atomic_ref<std::int64_t>(cooldown_until_ns_).load()));
  for_each_table([&](const ThrottleTable& table) { sum = mix64(sum) + table.hash(); });
  return sum;
}

}  // namespace kvlift
