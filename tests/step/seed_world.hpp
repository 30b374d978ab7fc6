// One seed, one small world: a store of two or three nodes, a dozen keys, random operations, faults of every
// kind, invariants after every event. The seed decides everything, settings and policy included.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/step/step_driver.hpp"

namespace kvlift::step {

/// Faults of whole processes, beside the driver's faults of effects.
enum class ProcessFault : std::uint8_t { node_crash, node_restart, master_restart_snapshot, master_restart_empty };
inline constexpr std::size_t kProcessFaults = 4;

struct SeedReport {
  std::string violation;   ///< empty: none. Otherwise the invariant and where
  std::uint64_t hash = 0;  ///< over every completion, its time and the states between
  std::uint64_t events = 0;
  std::array<std::uint64_t, kFaultKinds> faults{};
  std::array<std::uint64_t, kProcessFaults> process_faults{};
  std::uint64_t promotions_completed = 0, promotions_failed = 0, promotions_skipped = 0;
  std::array<bool, 8> promotion_errors{};  ///< which step of the chain a failure was seen at, by chain state
  std::uint64_t gets_ok = 0, gets_failed = 0, evictions = 0, offloads = 0, cooldowns = 0;
};

/// Runs `events` events with faults, then lets the faults stop and waits for quiet (I2, I9).
/// `check_every` 1 looks at the invariants after every event.
SeedReport run_seed(std::uint64_t seed, std::uint64_t events, std::uint64_t check_every = 1);

}  // namespace kvlift::step
