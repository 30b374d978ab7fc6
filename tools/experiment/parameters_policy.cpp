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
          choice({"policy.trigger", "what starts a promotion", preset}, KVLIFT_CHOICE(policy.trigger),
                 {"none", "on_hit", "exist_probe", "router_call"}),
          toggle({"policy.gate_frequency", "gate: the frequency sketch must have seen the key", preset},
                 KVLIFT_FIELD(policy.gate_frequency)),
          toggle({"policy.gate_watermark", "gate: DRAM must be below the eviction watermark", preset},
                 KVLIFT_FIELD(policy.gate_watermark)),
          toggle({"policy.gate_cap", "gate: promotion_queue_limit", preset}, KVLIFT_FIELD(policy.gate_cap)),
          toggle({"policy.gate_cooldown", "gate: the client pauses after DRAM pressure", preset},
                 KVLIFT_FIELD(policy.gate_cooldown)),
          choice({"policy.execution", "who carries promotions out", preset}, KVLIFT_CHOICE(policy.execution),
                 {"immediate_pool", "pull"}),
          choice({"policy.lease", "when a promotion earns its read lease", preset}, KVLIFT_CHOICE(policy.lease),
                 {"none", "enqueue", "commit"}),
          choice({"policy.dram", "where promoted objects find room", preset}, KVLIFT_CHOICE(policy.dram),
                 {"shared_pool", "reserved_partition", "transit_buffer"}),
          choice({"policy.probe_lease", "which hits of a probe are leased", preset}, KVLIFT_CHOICE(policy.probe_lease),
                 {"every_hit", "none", "last_hit_only", "longest_prefix"}),
          choice(
              {"policy.get_wait", "whether a get waits for promotions under way; off turns get_kick off too", preset},
              KVLIFT_CHOICE(policy.get_wait), {"off", "batch_deadline", "per_key"}),
          toggle({"policy.get_kick", "a get that heads for the SSD tries one promotion of its keys", preset},
                 KVLIFT_FIELD(policy.get_kick)),
          toggle({"policy.retry_candidates", "the master retries promotions that it refused for the moment", preset},
                 KVLIFT_FIELD(policy.retry_candidates)),
      });
}

}  // namespace kvlift::experiment
