// What a trace is like, in figures, from one pass.
//
// A block's first use is a miss and each later one a hit: the infinite cache. Percentiles are by nearest rank, so they
// are values of the trace. Memory follows distinct ids and uses (about 100 bytes per id), not the text.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.hpp"
#include "core/units.hpp"
#include "traces/request.hpp"

namespace kvlift {

class TraceReader;

/// Of a list of integers; all 0 for an empty one.
struct Figures {
  std::int64_t count = 0;
  double mean = 0;
  std::int64_t min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// Hits of an LRU cache of that many blocks, which are used in order of the request's list.
struct LruPoint {
  std::int64_t capacity_blocks = 0;
  std::int64_t hits = 0;
};

struct TraceInfo {
  Tokens block_tokens;
  std::int64_t requests = 0;
  Time first_arrival, last_arrival;
  std::int64_t distinct_stamps = 0;
  std::int64_t largest_tick = 0;  ///< requests with one stamp
  Figures input_tokens, output_tokens;
  Figures blocks;  ///< per request
  std::int64_t blocks_total = 0;
  std::int64_t partial_blocks = 0;  ///< requests whose last block is partial
  std::int64_t distinct_ids = 0;
  std::int64_t used_once = 0;  ///< ids
  std::int64_t hits = 0;       ///< of an infinite cache
  Figures reuse_gap_ms;        ///< between uses of one id
  std::vector<LruPoint> lru;
  /// Uses of an id behind another id than at its first use; 0 in a sound trace, where an id stands for all before it.
  std::int64_t misplaced_ids = 0;

  double share_of_blocks(std::int64_t count) const;  ///< 0 for a trace without blocks
};

/// `capacities` of the LRU figures, in blocks, each at least 1. Throws what the source throws.
TraceInfo describe(const TraceSource& source, Tokens block_tokens,
                   const std::vector<std::int64_t>& capacities = {1'000, 2'000, 5'000, 10'000, 20'000, 50'000,
                                                                  100'000});
/// What is left of `reader`.
TraceInfo describe(TraceReader& reader);

/// Sorts `values`.
Figures figures_of(std::vector<std::int64_t>& values);

}  // namespace kvlift
