// One shard of the throttle: a bounded map from key to state that does work only for the keys it is given.
//
// No call is slow because the table is large:
//  - the hash index grows by linear hashing (Litwin 1980): an insertion splits one bucket, nothing is rehashed at once;
//  - storage comes in small segments on demand: an empty table costs nothing, a growing one a few page faults at a
//    time, and entries keep their place;
//  - entries stand in one queue per kind of window, in the order in which the window began. An insertion takes back at
//    most kReclaimed entries whose window is over, from the heads: enough to outpace growth, and no sweep.
// When the table is full and no head is over, a new key is refused.
//
//   bucket --> entry --> entry         queue: oldest <--> entry <--> newest
//
// Not safe for several threads; the caller locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/segments.hpp"
#include "core/throttle_types.hpp"
#include "core/time.hpp"

namespace kvlift {

/// Up to kMax keys of a probe, sorted by shard; a shard's keys keep their order. Lives on the stack.
struct ThrottleBatch {
  static constexpr std::size_t kMax = 128;
  static constexpr std::size_t kShards = 16;

  /// The shard is the top four bits of the hash under `shard_mask`.
  ThrottleBatch(std::span<const ObjectKey> keys, std::size_t shard_mask);
  std::span<const std::uint8_t> of_shard(std::size_t shard) const {
    return {order.data() + begin[shard], static_cast<std::size_t>(begin[shard + 1] - begin[shard])};
  }

  std::span<const ObjectKey> keys;
  std::array<std::uint64_t, kMax> hashes;  ///< of keys[i]
  std::array<Generation, kMax> granted;    ///< to keys[i]; none when it was not
  std::array<std::uint8_t, kMax> order;    ///< indices into keys
  std::array<std::uint8_t, kShards + 1> begin;
};

class ThrottleTable {
 public:
  static constexpr int kReclaimed = 2;

  ThrottleTable() = default;
  explicit ThrottleTable(const ThrottleSettings& settings);

  /// Decides on the keys of `batch` that `chosen` names and notes the generations of the granted ones.
  ReserveTally reserve(ThrottleBatch& batch, std::span<const std::uint8_t> chosen, Time now);
  /// Moves a key to `state` when its generation is `generation` and may_follow allows it.
  bool report(const ObjectKey& key, std::uint64_t hash, Generation generation, ThrottleState state, Time now,
              std::vector<WaiterId>* woken);
  bool release(const ObjectKey& key, std::uint64_t hash, Generation generation, Time now, std::vector<WaiterId>& woken);
  std::optional<ThrottleState> state_of(const ObjectKey& key, std::uint64_t hash, Time now) const;
  WaitAnswer wait(const ObjectKey& key, std::uint64_t hash, WaiterId waiter, Time now);
  bool cancel_wait(const ObjectKey& key, std::uint64_t hash, WaiterId waiter);

  const ThrottleCounters& counters() const { return counters_; }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const;
  std::uint64_t hash() const;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;
  static constexpr std::size_t kBucketsPerEntry = 2;

  /// What a probe of a known key looks at: half a cache line.
  struct Entry {
    Key key;
    Time until;  ///< the window is over after this
    TenantId tenant;
    Slot chain;  ///< next of the bucket; of the free list, for a free entry
  };
  /// The rest of an entry, under the same slot.
  struct Round {
    Generation generation;
    Slot older, newer;  ///< neighbours in the queue
    Slot waiters;       ///< first of the open waits, newest first
    ThrottleState state;
  };
  struct Waiter {
    WaiterId id;
    Slot next;
  };
  struct Queue {
    Slot oldest = kNone, newest = kNone;
  };
  enum Window : std::size_t { kLive, kHealthy, kFailed, kWindows };

  static Window window_of(ThrottleState state);
  Time end_of(ThrottleState state, Time since) const;
  Time triggered_at(Slot slot, Time now) const;
  static bool over(const Entry& entry, Time now) { return now > entry.until; }
  static bool is(const Entry& entry, const ObjectKey& key) {
    return entry.key == key.key && entry.tenant == key.tenant;
  }
  /// The entry of a key whose window is not over, or kNone.
  Slot find_current(const ObjectKey& key, std::uint64_t hash, Time now) const;
  /// The same for a report: also of that generation; counts it as stale otherwise.
  Slot find_reported(const ObjectKey& key, std::uint64_t hash, Generation generation, Time now);
  Slot find(const ObjectKey& key, std::uint64_t hash) const;
  std::size_t bucket_of(std::uint64_t hash) const;

  Generation grant(const ObjectKey& key, std::uint64_t hash, Time now, ReserveTally& tally);
  Slot insert(const ObjectKey& key, std::uint64_t hash, Time now);
  void erase(Slot slot, std::uint64_t hash);
  void reclaim(Time now);
  void split_bucket();
  /// Puts an entry that stands in no queue into a state whose window begins at `since`.
  void enter(Slot slot, ThrottleState state, Time since);
  void leave(Slot slot);
  void wake(Round& round, std::vector<WaiterId>& woken);
  void drop_waiters(Round& round);
  void free_waiter(Slot slot);

  // First, so that what a probe of known keys writes shares a cache line with the lock in front of it.
  ThrottleCounters counters_;

  std::array<Duration, kWindows> windows_{};
  std::size_t entries_max_ = 0;
  std::size_t waiters_max_ = 0;

  Segments<Entry, 256> entries_;
  Segments<Round, 256> rounds_;  ///< grows with entries_
  Segments<Slot, 1024> buckets_;
  Segments<Waiter, 256> waiters_;
  std::array<Queue, kWindows> queues_;
  std::size_t size_ = 0;
  std::size_t entries_used_ = 0;  ///< ever taken from entries_; the others are in the free list
  std::size_t bucket_count_ = 0;
  std::size_t waiters_used_ = 0;
  Slot free_entry_ = kNone;
  Slot free_waiter_ = kNone;
  std::uint64_t last_generation_ = 0;
};

}  // namespace kvlift
