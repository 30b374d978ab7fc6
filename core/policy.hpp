// A design of SSD->DRAM promotion as a vector of choices (DESIGN.md section 2, store-mechanics section 8).
//
// Plain data with named presets. Core reads single fields; no code asks which preset it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/time.hpp"

namespace kvlift {

struct Policy {
  enum class Trigger : std::uint8_t { none, on_hit, exist_probe, router_call };
  enum class Execution : std::uint8_t { immediate_pool, pull };
  enum class LeaseMoment : std::uint8_t { none, enqueue, commit };
  enum class DramSource : std::uint8_t { shared_pool, reserved_partition, transit_buffer };
  enum class ProbeLease : std::uint8_t { every_hit, none, last_hit_only, longest_prefix };
  enum class GetWait : std::uint8_t { off, batch_deadline, per_key };

  Trigger trigger = Trigger::none;
  bool gate_frequency = false;  ///< count-min sketch, `promotion_admission_threshold`
  bool gate_watermark = false;  ///< refuse at or above the eviction watermark
  bool gate_cap = true;         ///< `promotion_queue_limit`
  bool gate_cooldown = false;   ///< client back-off after NO_AVAILABLE_HANDLE
  Execution execution = Execution::immediate_pool;
  LeaseMoment lease = LeaseMoment::none;
  DramSource dram = DramSource::shared_pool;
  ProbeLease probe_lease = ProbeLease::every_hit;
  GetWait get_wait = GetWait::off;
  bool get_kick = false;          ///< one demand-side attempt for a batch that heads for the SSD
  bool retry_candidates = false;  ///< the master retries transient refusals

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// The preset of that name: "none", "promotion-on-hit", "rfc-4271". Empty when there is none.
std::optional<Policy> policy_preset(std::string_view name);
/// Names that policy_preset knows, in the order of store-mechanics section 8.2.
const std::vector<std::string_view>& policy_preset_names();

}  // namespace kvlift
