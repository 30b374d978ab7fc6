// A throttle to write tests against: calls without vectors, states by name.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/throttle.hpp"

namespace kvlift::throttle_world {

using State = ThrottleState;
using Keys = std::vector<ObjectKey>;
using Woken = std::vector<WaiterId>;

inline ObjectKey key(std::uint64_t n) { return {{n, mix64(n)}, TenantId::standard}; }
inline Time at(std::int64_t s) { return Time{} + seconds(s); }

inline Keys key_range(std::uint64_t first, std::uint64_t count) {
  Keys keys;
  for (std::uint64_t n = first; n < first + count; ++n) keys.push_back(key(n));
  return keys;
}

/// A throttle whose calls take no vectors.
struct World {
  explicit World(ThrottleSettings settings = {}) : throttle(settings) {}

  std::vector<Reservation> reserve(const Keys& keys, Time now) {
    std::vector<Reservation> out;
    tally = throttle.reserve(keys, now, out);
    EXPECT_EQ(tally.granted, out.size());
    EXPECT_EQ(tally.granted + tally.deduplicated + tally.refused_full, keys.size());
    return out;
  }
  /// The generation when granted.
  std::optional<Generation> reserve(std::uint64_t n, Time now) {
    const auto out = reserve(Keys{key(n)}, now);
    if (out.empty()) return std::nullopt;
    return out[0].generation;
  }
  bool report(std::uint64_t n, Generation g, State state, Time now) {
    switch (state) {
      case State::in_flight:
        return throttle.mark_in_flight(key(n), g, now);
      case State::completed:
        return throttle.mark_completed(key(n), g, now, woken);
      case State::failed:
        return throttle.mark_failed(key(n), g, now, woken);
      case State::already_resident:
        return throttle.mark_already_resident(key(n), g, now);
      case State::delegated:
        return throttle.mark_delegated(key(n), g, now);
      case State::triggered:
        break;
    }
    return false;
  }
  /// Triggers key n at `triggered` and brings it to `state` at `entered`.
  Generation bring(std::uint64_t n, State state, Time triggered, Time entered) {
    const Generation g = reserve(n, triggered).value();
    if (state == State::completed) {
      EXPECT_TRUE(report(n, g, State::in_flight, triggered));
    }
    if (state != State::triggered) {
      EXPECT_TRUE(report(n, g, state, entered));
    }
    EXPECT_EQ(throttle.state_of(key(n), entered), state);
    return g;
  }

  Throttle<> throttle;
  ReserveTally tally;
  Woken woken;
};

inline constexpr State kAllStates[] = {State::triggered, State::in_flight,        State::completed,
                                       State::failed,    State::already_resident, State::delegated};

}  // namespace kvlift::throttle_world
