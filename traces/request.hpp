// One line of a request trace, under the names that the Mooncake format gives its fields (README.md).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

struct TraceRequest {
  Time arrival;          ///< since the start of the trace; whole milliseconds in a file
  Tokens input_length;   ///< of the prompt, at least 1
  Tokens output_length;  ///< generated; 0 is a request that only fills the cache
  /// ceil(input_length / block_tokens) ids, each for its block and all before it: equal leading ids are a shared
  /// prefix. The last block is partial unless input_length is a multiple of block_tokens.
  std::vector<std::uint64_t> hash_ids;
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

/// The last stamp that a Time can hold: 292 years.
inline constexpr std::int64_t kTimestampMaxMs = std::numeric_limits<std::int64_t>::max() / milliseconds(1).ns;

/// The next request, by arrival; false at the end. What it is given is overwritten, and its memory is used again.
/// Throws TraceError.
using TraceSource = std::function<bool(TraceRequest&)>;

/// The blocks a prompt takes: ceil(input / block), for positive operands.
constexpr std::int64_t blocks_of(Tokens input, Tokens block) {
  return input.value / block.value + (input.value % block.value != 0 ? 1 : 0);
}

}  // namespace kvlift
