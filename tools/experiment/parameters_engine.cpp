// Rows of "engine": the serving engine as a cost model.
#include "tools/experiment/parameter_row.hpp"

namespace kvlift::experiment {

using namespace row;

void add_engine_parameters(std::vector<Parameter>& out) {
  const char* assumed = "assumed";
  out.insert(
      out.end(),
      {
          number({"engine.engines", "equal engines, one after another on the nodes", "one engine"}, "engines",
                 KVLIFT_FIELD(engine.engines), 1, kNodesMax),
          number({"engine.ranks", "tensor-parallel size; one node each", "no tensor parallelism"}, "ranks",
                 KVLIFT_FIELD(engine.ranks), 1, kNodesMax),
          toggle({"engine.ranks_share_keys", "every rank reads every key (MLA); false: each owns its share", assumed},
                 KVLIFT_FIELD(engine.ranks_share_keys)),
          number({"engine.block_tokens", "tokens of a KV block, which is a key", "Mooncake traces"}, "tokens",
                 KVLIFT_FIELD(engine.block_tokens), 1, 1e6),
          number({"engine.bytes_per_token", "KV of one token, all ranks' keys together; 0: workload.block_bytes says",
                  "given by the model"},
                 "bytes", KVLIFT_FIELD(engine.bytes_per_token), 0, 1e9),
          number({"engine.max_num_seqs", "requests that run at the same time", assumed}, "requests",
                 KVLIFT_FIELD(engine.max_num_seqs), 1, 1e6),
          number({"engine.max_num_batched_tokens", "token budget of a step", assumed}, "tokens",
                 KVLIFT_FIELD(engine.max_num_batched_tokens), 1, 1e9),
          delay_ms({"engine.step_base_ms", "cost of any step", assumed}, KVLIFT_FIELD(engine.step_base)),
          number({"engine.prefill_ns_per_token", "linear part of prefill", assumed}, "ns",
                 KVLIFT_FIELD(engine.prefill_ns_per_token), 0, 1e9),
          number({"engine.prefill_ns_per_token_pair", "attention: times computed tokens x mean context",
                  "assumed: in the linear part"},
                 "ns", KVLIFT_FIELD(engine.prefill_ns_per_token_pair), 0, 1e6),
          number({"engine.decode_ns_per_sequence", "added to a step by each request that decodes", assumed}, "ns",
                 KVLIFT_FIELD(engine.decode_ns_per_sequence), 0, 1e10),
          choice({"engine.load", "whether steps wait for the load of cached KV", assumed}, KVLIFT_CHOICE(engine.load),
                 {"blocks_step", "asynchronous"}),
          number({"engine.loads_at_once", "requests whose KV one engine loads at the same time", assumed}, "requests",
                 KVLIFT_FIELD(engine.loads_at_once), 1, 1e6),
          number({"engine.gpu_cache_blocks", "the engine's own prefix cache, LRU; 0: off", "off"}, "blocks",
                 KVLIFT_FIELD(engine.gpu_cache_blocks), 0, 1e12),
          toggle({"engine.probe_at_arrival", "false: the cache is probed at admission, which leaves no window",
                  "RFC #4271"},
                 KVLIFT_FIELD(engine.probe_at_arrival)),
          toggle({"engine.save_after_prefill", "the KV of new full blocks is stored", "RFC #4271"},
                 KVLIFT_FIELD(engine.save_after_prefill)),
      });
}

}  // namespace kvlift::experiment
