// The serving engine as a cost model: what a step costs, what may run together, how KV is loaded and saved.
#pragma once

#include <cstdint>

#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

struct EngineSettings {
  /// How the load of cached KV meets the engine's steps.
  enum class Load : std::uint8_t {
    blocks_step,   ///< the step that admits a request waits for its load (synchronous connector)
    asynchronous,  ///< the request waits aside; steps go on without it
  };

  std::int64_t engines = 1;                 ///< equal engines; engine e runs on nodes e*ranks .. e*ranks+ranks-1
  std::int64_t ranks = 1;                   ///< tensor-parallel size; one node (store client) each
  bool ranks_share_keys = true;             ///< MLA: every rank reads every key. False: each rank owns its share
  Tokens block_tokens = {512};              ///< tokens of a KV block = of a key
  Bytes bytes_per_token = {0};              ///< KV of one token, all ranks' keys together
  std::int64_t max_num_seqs = 64;           ///< requests running at a time
  Tokens max_num_batched_tokens = {8192};   ///< token budget of a step
  Duration step_base = milliseconds(20);    ///< cost of any step
  double prefill_ns_per_token = 20'000;     ///< linear part of prefill
  double prefill_ns_per_token_pair = 0.0;   ///< attention part: times computed tokens x mean context
  double decode_ns_per_sequence = 200'000;  ///< added per decoding request and step
  Load load = Load::asynchronous;
  std::int64_t loads_at_once = 1;     ///< requests whose KV one engine loads at the same time
  std::int64_t gpu_cache_blocks = 0;  ///< engine's own prefix cache, LRU; 0 is off
  bool probe_at_arrival = true;       ///< false: at admission, which leaves no window
  bool save_after_prefill = true;     ///< put the KV of new full blocks into the store
};

}  // namespace kvlift
