// A design of SSD->DRAM promotion as a vector of choices (DESIGN.md section 2, store-mechanics section 8).
//
// Plain data with named presets. Core reads single fields; no code asks which preset it is. A combination that no
// code carries out is an error of the scenario, never a field that does nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/time.hpp"

namespace kvlift {

struct Policy {
  enum class Trigger : std::uint8_t {
    none,
    on_hit,
    exist_probe,
    router_call,  ///< a router looks the keys' tiers up and asks for them before the request enters the engine
    oracle,       ///< no design: every read finds in DRAM what is on SSD, as if promoted in time and for nothing
  };
  enum class Reserve : std::uint8_t { before_query, after_query };
  enum class Registration : std::uint8_t { one_by_one, whole_chunk };
  enum class Resident : std::uint8_t { refused, accepted };
  enum class Execution : std::uint8_t { immediate_pool, pull };
  enum class LeaseMoment : std::uint8_t { none, enqueue, commit };
  enum class DramSource : std::uint8_t { shared_pool, reserved_partition, transit_buffer };
  enum class OnFull : std::uint8_t {
    stop_list,  ///< the rest of the list is given up (RFC #4271)
    next_key,   ///< the next key is tried (#2646)
    evict,      ///< an eviction cycle runs and the allocation is tried once more, as a put's is (#2213)
    swap,       ///< the coldest residents that SSD has too make room, one by one
  };
  enum class ProbeLease : std::uint8_t { every_hit, none, last_hit_only, longest_prefix };
  enum class GetWait : std::uint8_t {
    off,             ///< best effort
    batch_deadline,  ///< `get_wait_budget` for the whole batch
    per_key,         ///< `get_wait_budget` for each key anew
    complete,        ///< until every live promotion of the batch has ended
    by_length,       ///< min(cap, base + per 1000 tokens) for the whole batch
  };
  enum class StagedReuse : std::uint8_t {
    none,         ///< each reader reads the SSD for itself
    under_way,    ///< what one reader, or a promotion, is reading or has staged serves all who ask meanwhile
    until_needed  ///< it stays in staging until others need the room
  };

  Trigger trigger = Trigger::none;
  bool all_tenants = true;   ///< false: only keys of the standard tenant are triggered (#2646)
  std::int64_t routers = 1;  ///< that requests go through in turn; one key triggered by two is promoted once
  Reserve reserve = Reserve::before_query;
  Registration registration = Registration::one_by_one;
  Resident resident = Resident::refused;  ///< what a registration answers when DRAM has the key already

  bool gate_frequency = false;  ///< count-min sketch, `promotion_admission_threshold`
  bool gate_watermark = false;  ///< refuse at or above the eviction watermark
  bool gate_cap = true;         ///< `promotion_queue_limit`
  bool gate_cooldown = false;   ///< client back-off after NO_AVAILABLE_HANDLE

  Execution execution = Execution::immediate_pool;
  bool pull_own_loop = true;      ///< false: the pull follows the offload round, on the heartbeat's thread
  Duration pull_period{0};        ///< sleep between pulls of an own loop; 0: the holder's heartbeat period
  std::int64_t pull_batch = 0;    ///< tasks of one pull; 0: `promotion_max_per_heartbeat`
  std::int64_t pull_workers = 1;  ///< promotions of one pull under way at a time
  Duration task_budget{0};        ///< a task not pulled within this is dropped (#2769); 0: kept until the reaper

  LeaseMoment lease = LeaseMoment::none;
  DramSource dram = DramSource::shared_pool;
  double dram_share = 0;    ///< of every segment that only promotions may use
  bool dram_strict = true;  ///< promotions use nothing but that share
  OnFull on_full = OnFull::stop_list;
  ProbeLease probe_lease = ProbeLease::every_hit;

  GetWait get_wait = GetWait::off;
  Duration get_wait_budget{0};                                            ///< 0: `ssd_get_wait`
  Duration get_wait_base{0}, get_wait_per_1k_tokens{0}, get_wait_cap{0};  ///< by_length
  bool get_kick = false;          ///< one demand-side attempt for a batch that heads for the SSD
  bool retry_candidates = false;  ///< the master retries transient refusals

  StagedReuse staged_reuse = StagedReuse::none;
  bool yield_to_reads = false;      ///< a prefetch job waits with its next key while somebody reads the holder's SSD
  std::int64_t read_part_keys = 0;  ///< keys of a holder that a get reads at a time, the next while they travel; 0: all

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// The preset of that name; empty when there is none.
std::optional<Policy> policy_preset(std::string_view name);
/// Names that policy_preset knows: the designs in the order of store-mechanics section 8.2, each before its variants,
/// then our own and the bound.
const std::vector<std::string_view>& policy_preset_names();

}  // namespace kvlift
