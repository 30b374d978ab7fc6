// Rows of "policy": the design of promotion as a vector of choices (DESIGN.md section 2).
#include "tools/experiment/parameter_row.hpp"

namespace kvlift::experiment {

using namespace row;

void add_policy_parameters(std::vector<Parameter>& out) {
  const char* preset = "the preset";
  std::vector<std::string> presets(policy_preset_names().begin(), policy_preset_names().end());
  out.insert(
      out.end(),
      {
          choice({"policy.preset", "named design that the other fields vary; \"policy\": \"NAME\" is short for it",
                  "no promotion"},
                 KVLIFT_FIELD(policy_preset), std::move(presets)),
          choice({"policy.trigger", "what starts a promotion; oracle: none is needed, a bound of all designs", preset},
                 KVLIFT_CHOICE(policy.trigger), {"none", "on_hit", "exist_probe", "router_call", "oracle"}),
          toggle({"policy.all_tenants", "keys of every tenant are triggered; false: of the standard one only", preset},
                 KVLIFT_FIELD(policy.all_tenants)),
          number({"policy.routers", "routers that requests pass in turn", preset}, "routers",
                 KVLIFT_FIELD(policy.routers), 1, 1'000),
          choice({"policy.reserve", "when a trigger marks its keys, so that others leave them alone", preset},
                 KVLIFT_CHOICE(policy.reserve), {"before_query", "after_query"}),
          choice(
              {"policy.registration", "tasks are made key by key, each executed at once, or for a chunk first", preset},
              KVLIFT_CHOICE(policy.registration), {"one_by_one", "whole_chunk"}),
          choice(
              {"policy.resident", "registration of a key that DRAM has: refused, or accepted without a task", preset},
              KVLIFT_CHOICE(policy.resident), {"refused", "accepted"}),
          toggle({"policy.gate_frequency", "gate: the frequency sketch must have seen the key", preset},
                 KVLIFT_FIELD(policy.gate_frequency)),
          toggle({"policy.gate_watermark", "gate: DRAM must be below the eviction watermark", preset},
                 KVLIFT_FIELD(policy.gate_watermark)),
          toggle({"policy.gate_cap", "gate: promotion_queue_limit", preset}, KVLIFT_FIELD(policy.gate_cap)),
          toggle({"policy.gate_cooldown", "gate: the client pauses after DRAM pressure", preset},
                 KVLIFT_FIELD(policy.gate_cooldown)),
          choice({"policy.execution", "who carries promotions out", preset}, KVLIFT_CHOICE(policy.execution),
                 {"immediate_pool", "pull"}),
          toggle({"policy.pull_own_loop", "the pull has its own loop; false: it follows the offload round", preset},
                 KVLIFT_FIELD(policy.pull_own_loop)),
          span_ms({"policy.pull_period_ms", "sleep between pulls of an own loop; 0: heartbeat_period_ms", preset},
                  KVLIFT_FIELD(policy.pull_period)),
          number({"policy.pull_batch", "tasks of one pull; 0: promotion_max_per_heartbeat", preset}, "tasks",
                 KVLIFT_FIELD(policy.pull_batch), 0, 1'024),
          number({"policy.pull_workers", "promotions of one pull under way at a time", preset}, "threads",
                 KVLIFT_FIELD(policy.pull_workers), 1, 1'000),
          span_ms(
              {"policy.task_budget_ms", "a task not pulled within this is dropped; 0: kept until the reaper", preset},
              KVLIFT_FIELD(policy.task_budget)),
          choice({"policy.lease", "when a promotion earns its read lease", preset}, KVLIFT_CHOICE(policy.lease),
                 {"none", "enqueue", "commit"}),
          choice({"policy.dram", "where promoted objects find room", preset}, KVLIFT_CHOICE(policy.dram),
                 {"shared_pool", "reserved_partition", "transit_buffer"}),
          ratio({"policy.dram_share", "share of every segment that only promotions use", preset},
                KVLIFT_FIELD(policy.dram_share)),
          toggle({"policy.dram_strict", "promotions use nothing but that share", preset},
                 KVLIFT_FIELD(policy.dram_strict)),
          choice({"policy.on_full", "what a promotion that finds no room in the shared pool does", preset},
                 KVLIFT_CHOICE(policy.on_full), {"stop_list", "next_key", "evict", "swap"}),
          choice({"policy.probe_lease", "which hits of a probe are leased", preset}, KVLIFT_CHOICE(policy.probe_lease),
                 {"every_hit", "none", "last_hit_only", "longest_prefix"}),
          choice(
              {"policy.get_wait", "whether a get waits for promotions under way; off turns get_kick off too", preset},
              KVLIFT_CHOICE(policy.get_wait), {"off", "batch_deadline", "per_key", "complete", "by_length"}),
          span_ms({"policy.get_wait_budget_ms", "batch_deadline, per_key: how long; 0: store.client.ssd_get_wait_ms",
                   preset},
                  KVLIFT_FIELD(policy.get_wait_budget)),
          span_ms({"policy.get_wait_base_ms", "by_length: for any batch", preset}, KVLIFT_FIELD(policy.get_wait_base)),
          span_ms({"policy.get_wait_per_1k_tokens_ms", "by_length: more for each 1000 tokens", preset},
                  KVLIFT_FIELD(policy.get_wait_per_1k_tokens)),
          span_ms({"policy.get_wait_cap_ms", "by_length: at most", preset}, KVLIFT_FIELD(policy.get_wait_cap)),
          toggle({"policy.get_kick", "a get that heads for the SSD tries one promotion of its keys", preset},
                 KVLIFT_FIELD(policy.get_kick)),
          choice({"policy.staged_reuse",
                  "whom a read of the SSD serves: its reader, all who ask while it is staged, or until room is needed",
                  preset},
                 KVLIFT_CHOICE(policy.staged_reuse), {"none", "under_way", "until_needed"}),
          number({"policy.read_part_keys",
                  "keys of a holder that a get has read at a time, the next ones while these travel; 0: all at once",
                  preset},
                 "keys", KVLIFT_FIELD(policy.read_part_keys), 0, 1'000'000),
          toggle({"policy.yield_to_reads", "a prefetch job waits with its next key while a get reads the holder's SSD",
                  preset},
                 KVLIFT_FIELD(policy.yield_to_reads)),
          toggle({"policy.retry_candidates", "the master retries promotions that it refused for the moment", preset},
                 KVLIFT_FIELD(policy.retry_candidates)),
      });
}

}  // namespace kvlift::experiment
