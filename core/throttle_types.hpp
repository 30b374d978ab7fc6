// The words of the prefetch throttle: states, transitions, windows, results (RFC #4271, component 1).
//
//     reserve          register OK               notify success
//  [*] -----> triggered ------------> in_flight ---------------> completed        --> [*]  dedup_ttl after completion
//                 |                       |
//                 +-----------------------+--- any step failed -> failed           --> [*]  cooldown after the failure
//                 +--- query shows MEMORY --------------------> already_resident  --> [*]  dedup_ttl after the trigger
//                 +--- remote holder, or task of another -----> delegated         --> [*]  dedup_ttl after the trigger
//                 +--- release() ----- from in_flight too ----> [*]
//
// A window is over when strictly more than its length has passed. Three rules differ from the published
// implementation, whose behaviour is a known fault (store-mechanics 4.2, 4.3):
//  - triggered and in_flight belong to a live job and do not end by dedup_ttl, or the key would be granted under
//    its job (RC-01). `live_max` frees the key of a job that was lost; a job that is dropped releases its keys.
//  - failed counts from the failure, not from the trigger, and holds when dedup_ttl is 0 too. With cooldown 0 a
//    failed key is free at once.
//  - each grant has a generation; what a job reports under an older one is dropped and counted (RC-20).
//
// dedup_ttl 0 switches deduplication off: a triggered key is granted again under the *same* generation, so the
// first of its jobs to start gets the key and the others skip it. A key in flight is never granted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ids.hpp"
#include "core/time.hpp"

namespace kvlift {

enum class ThrottleState : std::uint8_t {
  triggered,  ///< granted; its job is queued or asks the master
  in_flight,  ///< the master has its task; the only state a get may wait for
  completed,  ///< committed to DRAM; says nothing about still being there
  failed,
  already_resident,  ///< nothing to do when its job looked
  delegated,         ///< another holder, or another task at the master, brings it; outcome unknown, no wait (RC-19)
};
inline constexpr std::size_t kThrottleStates = 6;

std::string_view to_string(ThrottleState state);

/// The picture above as a table. Leaving to [*] is not in it: release() does that from a live state, time from any.
constexpr bool may_follow(ThrottleState from, ThrottleState to) {
  constexpr std::array<std::array<bool, kThrottleStates>, kThrottleStates> kAllowed = {{
      //  triggered in_flight completed failed resident delegated
      {{false, true, false, true, true, true}},      // triggered
      {{false, false, true, true, false, false}},    // in_flight
      {{false, false, false, false, false, false}},  // completed
      {{false, false, false, false, false, false}},  // failed
      {{false, false, false, false, false, false}},  // already_resident
      {{false, false, false, false, false, false}},  // delegated
  }};
  return kAllowed[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

constexpr bool is_live(ThrottleState s) { return s == ThrottleState::triggered || s == ThrottleState::in_flight; }

/// Tells the grants of one key apart; grows, never repeats.
enum class Generation : std::uint64_t { none = 0 };
/// Whoever waits for a promotion, for example a batch get; given by the caller.
enum class WaiterId : std::uint64_t {};

struct ThrottleSettings {
  Duration dedup_ttl = seconds(30);   ///< window of the healthy end states; 0 or less: deduplication is off
  Duration cooldown = seconds(5);     ///< back-off of a failed key, and length of a memory-pressure cooldown
  Duration live_max = seconds(600);   ///< life of a master's task (store-mechanics 2.12): longer is a lost job
  std::size_t entries_max = 1 << 20;  ///< keys remembered at a time
  std::size_t waiters_max = 1 << 16;  ///< waits open at a time
};

struct Reservation {
  ObjectKey key;
  std::size_t index = 0;  ///< place of the key in the caller's batch
  Generation generation = Generation::none;
};

/// What became of the keys of one reserve(); the three add up to the batch.
struct ReserveTally {
  std::size_t granted = 0;
  std::size_t deduplicated = 0;  ///< inside a window
  std::size_t refused_full = 0;  ///< no room to remember the key, so it may not be triggered
};

enum class WaitAnswer : std::uint8_t {
  waiting,    ///< will be named once, by the call that takes the key out of in_flight
  completed,  ///< committed already
  not_live,   ///< nothing to wait for: read from SSD
  full,       ///< `waiters_max` reached: read from SSD
};

struct ThrottleCounters {
  std::uint64_t reserved = 0;
  std::uint64_t deduplicated = 0;
  std::uint64_t refused_full = 0;
  std::uint64_t expired_reclaimed = 0;   ///< entries whose window was over and whose place was taken back
  std::uint64_t stale_results = 0;       ///< reports under an older generation, or on a key no longer known
  std::uint64_t disallowed_results = 0;  ///< reports that may_follow forbids
  std::uint64_t waiters_dropped = 0;     ///< waits still open when live_max freed their key
  std::uint64_t cooldown_entered = 0;

  ThrottleCounters& operator+=(const ThrottleCounters& other);
  friend bool operator==(const ThrottleCounters&, const ThrottleCounters&) = default;
};

}  // namespace kvlift
