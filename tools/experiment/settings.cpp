#include "tools/experiment/settings.hpp"

#include <algorithm>
#include <memory>

namespace kvlift::experiment {

std::int64_t node_count(const PlatformSettings& platform) {
  std::int64_t nodes = 0;
  for (const HostSettings& host : platform.hosts) nodes += host.count * host.nodes;
  return nodes;
}

Bytes dram_bytes(const PlatformSettings& platform) {
  Bytes bytes;
  for (const HostSettings& host : platform.hosts) bytes += host.segment_bytes * (host.count * host.nodes);
  return bytes;
}

Bytes largest_object(const Settings& settings) {
  const EngineSettings& engine = settings.engine;
  Bytes largest{engine.bytes_per_token.value * engine.block_tokens.value};
  const std::vector<Bytes>& sizes = settings.workload.block_bytes;
  if (!sizes.empty()) largest = *std::max_element(sizes.begin(), sizes.end());
  if (!engine.ranks_share_keys) largest = {(largest.value + engine.ranks - 1) / engine.ranks};
  return largest;
}

Bytes prompt_bytes(const Settings& settings) {
  const EngineSettings& engine = settings.engine;
  const std::vector<Bytes>& sizes = settings.workload.block_bytes;
  const std::int64_t blocks =
      settings.workload.prompt_tokens.value / std::max<std::int64_t>(1, engine.block_tokens.value);
  Bytes total;
  for (std::int64_t i = 0; i < blocks; ++i) {
    total += sizes.empty() ? engine.bytes_per_token * engine.block_tokens.value
                           : sizes[static_cast<std::size_t>(i) % sizes.size()];
  }
  return total;
}

}  // namespace kvlift::experiment
