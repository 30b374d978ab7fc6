// Every knob of the store that the model uses, with the defaults of Mooncake Store (store-mechanics section 7).
//
// Plain data. tools/experiment binds each field to a path of the scenario file, with unit, range and source;
// core only reads them. `legacy` holds behaviour of the original that is known to be wrong and kept only
// because a published measurement cannot be reproduced without it.
#pragma once

#include <cstdint>

#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

enum class AllocationStrategy : std::uint8_t { random, free_ratio_first, local_first };
enum class SsdEviction : std::uint8_t { none, fifo, lru };

struct MasterSettings {
  Duration kv_lease_ttl = milliseconds(10'000);
  Duration kv_soft_pin_ttl_max = milliseconds(86'400'000);
  bool allow_evict_soft_pinned_objects = true;
  double eviction_ratio = 0.05;                 ///< share of evictable objects one cycle frees
  double eviction_high_watermark_ratio = 0.90;  ///< share of DRAM bytes; eviction above, on-hit gate at or above
  Duration eviction_period = milliseconds(10);  ///< fixed in the original
  bool eviction_per_segment = false;            ///< RC-66: a full segment evicts although the pool's ratio is low
  bool enable_offload = true;
  bool offload_on_evict = false;
  bool offload_force_evict = false;
  std::int64_t offloading_queue_limit = 50'000;  ///< objects per client
  double offload_cap_ratio = 0.5;                ///< share of the limit one cycle queues before forcing
  bool promotion_on_hit = false;
  std::int64_t promotion_admission_threshold = 2;  ///< sketch estimate; clamped to 1..255
  std::int64_t promotion_queue_limit = 50'000;     ///< tasks in flight, all promotion kinds together
  std::int64_t promotion_max_per_heartbeat = 1;    ///< 0 becomes 1; at most 1024 (RC-02, RC-04)
  Duration client_ttl = seconds(10);
  Duration put_start_discard_timeout = seconds(30);
  Duration put_start_release_timeout = seconds(600);  ///< age at which the reaper drops a put, offload or promotion
  AllocationStrategy allocation_strategy = AllocationStrategy::random;
  std::int64_t replica_num = 1;
  std::int64_t retry_candidate_limit = 50'000;  ///< fixed in the original, like the three below
  Duration retry_candidate_life = seconds(60);
  std::int64_t retry_candidate_tries = 8;
  Duration retry_backoff_max = milliseconds(1'000);
};

struct HolderSettings {
  Bytes staging_bytes = {1'342'177'280};       ///< arena for reads of the SSD; 1280 MiB
  Duration staging_ttl = milliseconds(5'000);  ///< life of a staged read
  Duration heartbeat_period = seconds(10);     ///< sleep between rounds of offload and on-hit pull
  Bytes bucket_bytes = mebibytes(256);
  std::int64_t bucket_keys = 500;
  Duration bucket_tail_flush = seconds(10);  ///< a bucket not full is written after this (RC-31)
  Bytes ssd_bytes = {2'199'023'255'552};     ///< logical quota of one holder
  std::int64_t ssd_keys = 10'000'000;
  SsdEviction ssd_eviction = SsdEviction::fifo;
  double ssd_high_watermark_ratio = 0.90;
  double ssd_low_watermark_ratio = 0.80;
  std::int64_t file_read_workers = 10;        ///< staged reads served at the same time by one holder
  std::int64_t prefetch_workers = 4;          ///< RFC #4271, component 1
  std::int64_t prefetch_queue_limit = 4'096;  ///< jobs; beyond it a trigger is refused and its keys released
};

struct ClientSettings {
  // `enable_ssd_prefetch` of the original is Policy::trigger == exist_probe here: one switch, not two.
  Duration ssd_prefetch_dedup_ttl = seconds(30);
  Duration ssd_prefetch_cooldown = seconds(5);
  Duration ssd_get_wait = milliseconds(0);  ///< one deadline for a batch; 0 switches wait and kick off
  std::int64_t prefetch_chunk_keys = 128;
  std::int64_t throttle_entries_max = 1 << 20;
  std::int64_t put_retry_max = 3;               ///< further tries of a put that found no room (RC-44); 0 drops it
  Duration put_retry_delay = milliseconds(20);  ///< two eviction periods: one to notice, one to free
  Duration ping_period = seconds(1);            ///< 0: no pings and no client expiry
  Duration rpc_timeout = seconds(10);           ///< assumed; the original waits about 91 s on a dead peer
};

struct LegacySettings {
  /// A put that ended stays in the set of running puts until the reaper (RC-68; measured rounds, settle 90 s).
  bool stuck_running_puts = false;
  /// A staged read that took `staging_ttl` or longer is thrown away as OBJECT_HAS_LEASE (RC-59).
  bool discard_late_staged_reads = false;
  /// A batch get reads its SSD keys endpoint after endpoint, and memory before SSD (section 3.6).
  bool serial_endpoints = false;
  /// One failed key fails every key of its endpoint (section 3.6).
  bool endpoint_fails_as_one = false;
  /// The source read of an offload grants a lease on the object it reads (RC-47).
  bool offload_read_leases = false;
  /// Failure of a promotion's allocation leaves the rest of the list triggered for the whole TTL (RC-14).
  bool pressure_leaves_triggered = false;
  /// A task registered by a client that died stays until the reaper instead of ending with its client (RC-23).
  bool tasks_outlive_clients = false;
};

struct StoreSettings {
  MasterSettings master;
  HolderSettings holder;
  ClientSettings client;
  LegacySettings legacy;
};

}  // namespace kvlift
