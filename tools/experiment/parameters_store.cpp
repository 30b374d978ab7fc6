// Rows of "store": the knobs of the store, with its defaults (store-mechanics 7).
#include "tools/experiment/parameter_row.hpp"

namespace kvlift::experiment {

using namespace row;

namespace {

constexpr double kSecond = 1e9;

void add_master(std::vector<Parameter>& out) {
  const char* knob = "store-mechanics 7";
  const char* fixed = "store-mechanics 7, fixed in the original";
  out.insert(
      out.end(),
      {
          span_ms({"store.master.kv_lease_ttl_ms", "read lease that a hit of exist or get grants", knob},
                  KVLIFT_FIELD(store.master.kv_lease_ttl)),
          span_ms({"store.master.kv_soft_pin_ttl_max_ms", "longest soft pin that may be asked for", knob},
                  KVLIFT_FIELD(store.master.kv_soft_pin_ttl_max)),
          toggle({"store.master.allow_evict_soft_pinned_objects", "soft-pinned objects are victims of the second pass",
                  knob},
                 KVLIFT_FIELD(store.master.allow_evict_soft_pinned_objects)),
          ratio({"store.master.eviction_ratio", "share of the evictable objects that one cycle frees", knob},
                KVLIFT_FIELD(store.master.eviction_ratio)),
          ratio({"store.master.eviction_high_watermark_ratio",
                 "share of DRAM bytes above which eviction runs, and from which on-hit promotion is refused", knob},
                KVLIFT_FIELD(store.master.eviction_high_watermark_ratio)),
          span_ms({"store.master.eviction_period_ms", "how often eviction looks", fixed},
                  KVLIFT_FIELD(store.master.eviction_period), 1),
          toggle({"store.master.eviction_per_segment", "a full segment evicts although the pool is below the watermark",
                  "RC-66"},
                 KVLIFT_FIELD(store.master.eviction_per_segment)),
          toggle({"store.master.enable_offload", "the SSD tier is on", "assumed: off in the original"},
                 KVLIFT_FIELD(store.master.enable_offload)),
          toggle({"store.master.offload_on_evict", "write to SSD when DRAM evicts, instead of when a put ends", knob},
                 KVLIFT_FIELD(store.master.offload_on_evict)),
          toggle(
              {"store.master.offload_force_evict", "evict without a copy on SSD when the offload queue is full", knob},
              KVLIFT_FIELD(store.master.offload_force_evict)),
          number({"store.master.offloading_queue_limit", "offload mailbox of one client", knob}, "objects",
                 KVLIFT_FIELD(store.master.offloading_queue_limit), 1),
          ratio({"store.master.offload_cap_ratio", "share of the limit that one cycle queues before it forces", knob},
                KVLIFT_FIELD(store.master.offload_cap_ratio)),
          toggle({"store.master.promotion_on_hit", "promotion triggered by get, beside whatever the policy triggers",
                  knob},
                 KVLIFT_FIELD(store.master.promotion_on_hit)),
          number({"store.master.promotion_admission_threshold", "estimate of the frequency sketch that admits a key",
                  knob},
                 "hits", KVLIFT_FIELD(store.master.promotion_admission_threshold), 1, 255),
          number({"store.master.promotion_queue_limit", "promotions in flight, of all kinds together", knob}, "tasks",
                 KVLIFT_FIELD(store.master.promotion_queue_limit), 1),
          number({"store.master.promotion_max_per_heartbeat", "on-hit promotions handed out by one pull", knob},
                 "tasks", KVLIFT_FIELD(store.master.promotion_max_per_heartbeat), 1, 1024),
          span({"store.master.client_ttl_s", "silence after which a client is given up", knob}, "s", kSecond,
               KVLIFT_FIELD(store.master.client_ttl), 0.001),
          span({"store.master.put_start_discard_timeout_s", "age at which a new put may replace an unfinished one",
                knob},
               "s", kSecond, KVLIFT_FIELD(store.master.put_start_discard_timeout)),
          span({"store.master.put_start_release_timeout_s", "age at which puts, offloads and promotions are reaped",
                knob},
               "s", kSecond, KVLIFT_FIELD(store.master.put_start_release_timeout)),
          choice({"store.master.allocation_strategy", "which segment takes a new replica", knob},
                 KVLIFT_CHOICE(store.master.allocation_strategy), {"random", "free_ratio_first", "local_first"}),
          number({"store.master.replica_num", "replicas in DRAM of a put", knob}, "replicas",
                 KVLIFT_FIELD(store.master.replica_num), 1, 64),
          number({"store.master.retry_candidate_limit", "refused on-hit promotions that wait for a retry", fixed},
                 "candidates", KVLIFT_FIELD(store.master.retry_candidate_limit), 0),
          span({"store.master.retry_candidate_life_s", "age at which a candidate is given up", fixed}, "s", kSecond,
               KVLIFT_FIELD(store.master.retry_candidate_life)),
          number({"store.master.retry_candidate_tries", "retries of one candidate", fixed}, "tries",
                 KVLIFT_FIELD(store.master.retry_candidate_tries), 0, 1'000'000),
          span_ms({"store.master.retry_backoff_max_ms", "longest pause between two retries", fixed},
                  KVLIFT_FIELD(store.master.retry_backoff_max)),
      });
}

void add_holder(std::vector<Parameter>& out) {
  const char* knob = "store-mechanics 7";
  out.insert(
      out.end(),
      {
          positive({"store.holder.staging_bytes", "arena through which a holder reads its SSD", knob}, "bytes",
                   KVLIFT_FIELD(store.holder.staging_bytes)),
          span_ms({"store.holder.staging_ttl_ms", "life of a staged read", knob},
                  KVLIFT_FIELD(store.holder.staging_ttl)),
          span_ms({"store.holder.heartbeat_period_ms", "sleep between rounds of offload and on-hit pull", knob},
                  KVLIFT_FIELD(store.holder.heartbeat_period), 1),
          positive({"store.holder.bucket_bytes", "a bucket is written when it holds so much", knob}, "bytes",
                   KVLIFT_FIELD(store.holder.bucket_bytes)),
          number({"store.holder.bucket_keys", "a bucket is written when it holds so many keys", knob}, "keys",
                 KVLIFT_FIELD(store.holder.bucket_keys), 1),
          span_ms({"store.holder.bucket_tail_flush_ms", "a bucket that is not full is written after this", "RC-31"},
                  KVLIFT_FIELD(store.holder.bucket_tail_flush)),
          positive({"store.holder.ssd_bytes", "quota of one holder on its SSD", knob}, "bytes",
                   KVLIFT_FIELD(store.holder.ssd_bytes)),
          number({"store.holder.ssd_keys", "quota of one holder in keys", knob}, "keys",
                 KVLIFT_FIELD(store.holder.ssd_keys), 1),
          choice({"store.holder.ssd_eviction", "which bucket leaves a full SSD", knob},
                 KVLIFT_CHOICE(store.holder.ssd_eviction), {"none", "fifo", "lru"}),
          ratio({"store.holder.ssd_high_watermark_ratio", "share of the quota above which the SSD evicts", knob},
                KVLIFT_FIELD(store.holder.ssd_high_watermark_ratio)),
          ratio({"store.holder.ssd_low_watermark_ratio", "share of the quota down to which it evicts", knob},
                KVLIFT_FIELD(store.holder.ssd_low_watermark_ratio)),
          number({"store.holder.file_read_workers", "staged reads that one holder serves at the same time", knob},
                 "threads", KVLIFT_FIELD(store.holder.file_read_workers), 1, 100'000),
          number({"store.holder.prefetch_workers", "promotions that one holder runs at the same time", "RFC #4271"},
                 "threads", KVLIFT_FIELD(store.holder.prefetch_workers), 1, 100'000),
          number({"store.holder.prefetch_queue_limit", "jobs that wait for a worker; more are refused",
                  "assumed: unbounded in the original"},
                 "jobs", KVLIFT_FIELD(store.holder.prefetch_queue_limit), 1),
      });
}

void add_client(std::vector<Parameter>& out) {
  const char* rfc = "RFC #4271";
  out.insert(
      out.end(),
      {
          span({"store.client.ssd_prefetch_dedup_ttl_s", "how long a healthy prefetch blocks another of its key", rfc},
               "s", kSecond, KVLIFT_FIELD(store.client.ssd_prefetch_dedup_ttl)),
          span({"store.client.ssd_prefetch_cooldown_s", "pause after DRAM pressure, and of a key that failed", rfc},
               "s", kSecond, KVLIFT_FIELD(store.client.ssd_prefetch_cooldown)),
          span_ms({"store.client.ssd_get_wait_ms",
                   "one deadline for a batch that waits for promotions; 0 turns waiting and kick off", rfc},
                  KVLIFT_FIELD(store.client.ssd_get_wait)),
          number({"store.client.prefetch_chunk_keys", "keys of one metadata query", rfc}, "keys",
                 KVLIFT_FIELD(store.client.prefetch_chunk_keys), 1, 1'000'000),
          number({"store.client.throttle_entries_max", "keys that the throttle of one client remembers", "assumed"},
                 "keys", KVLIFT_FIELD(store.client.throttle_entries_max), 1),
          number({"store.client.put_retry_max", "further tries of a put that found no room (RC-44)", "assumed"},
                 "tries", KVLIFT_FIELD(store.client.put_retry_max), 0, 1'000'000),
          span_ms({"store.client.put_retry_delay_ms", "pause before such a try",
                   "assumed: two eviction periods, one to notice and one to free"},
                  KVLIFT_FIELD(store.client.put_retry_delay)),
          span_ms({"store.client.ping_period_ms", "sign of life to the master; 0: none, and no expiry", "assumed"},
                  KVLIFT_FIELD(store.client.ping_period)),
          span_ms({"store.client.rpc_timeout_ms", "an unanswered RPC fails after this",
                   "assumed: about 91 s on a dead peer in the original"},
                  KVLIFT_FIELD(store.client.rpc_timeout), 0.001),
      });
}

void add_legacy(std::vector<Parameter>& out) {
  const char* off = "off: known to be wrong, kept to reproduce measurements";
  out.insert(
      out.end(),
      {
          toggle({"store.legacy.stuck_running_puts", "an ended put stays in the set of running puts (RC-68)", off},
                 KVLIFT_FIELD(store.legacy.stuck_running_puts)),
          toggle({"store.legacy.discard_late_staged_reads",
                  "a staged read that took staging_ttl_ms or longer is thrown away (RC-59)", off},
                 KVLIFT_FIELD(store.legacy.discard_late_staged_reads)),
          toggle({"store.legacy.serial_endpoints",
                  "a batch get reads endpoint after endpoint, and DRAM before SSD (store-mechanics 3.6)", off},
                 KVLIFT_FIELD(store.legacy.serial_endpoints)),
          toggle({"store.legacy.endpoint_fails_as_one",
                  "one failed key fails every key of its endpoint (store-mechanics 3.6)", off},
                 KVLIFT_FIELD(store.legacy.endpoint_fails_as_one)),
          toggle({"store.legacy.offload_read_leases", "the read of an offload leases its object (RC-47)", off},
                 KVLIFT_FIELD(store.legacy.offload_read_leases)),
          toggle({"store.legacy.pressure_leaves_triggered",
                  "after a failed allocation the rest of a list stays triggered for the whole dedup time (RC-14)", off},
                 KVLIFT_FIELD(store.legacy.pressure_leaves_triggered)),
          toggle({"store.legacy.tasks_outlive_clients", "tasks of a dead client stay until the reaper (RC-23)", off},
                 KVLIFT_FIELD(store.legacy.tasks_outlive_clients)),
      });
}

}  // namespace

void add_store_parameters(std::vector<Parameter>& out) {
  add_master(out);
  add_holder(out);
  add_client(out);
  add_legacy(out);
}

}  // namespace kvlift::experiment
