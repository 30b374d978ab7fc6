#include "core/run.hpp"

#include <algorithm>
#include <cmath>

namespace kvlift {

RunPlan scaled(const RunPlan& plan, double scale) {
  RunPlan s = plan;
  const auto size = [scale](Bytes& bytes) {
    bytes.value = static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes.value) * scale));
  };
  size(s.store.holder.staging_bytes);
  size(s.store.holder.bucket_bytes);
  size(s.store.holder.ssd_bytes);
  size(s.engine.bytes_per_token);
  for (Bytes& bytes : s.workload.block_bytes) size(bytes);
  for (HostSettings& host : s.platform.hosts) {
    size(host.segment_bytes);
    size(host.ssd.page_cache_bytes);
    for (double* bandwidth :
         {&host.ssd.read_bandwidth, &host.ssd.write_bandwidth, &host.ssd.stream_bandwidth, &host.ssd.cached_bandwidth,
          &host.copy_bandwidth, &host.node_bandwidth, &host.nic_bandwidth})
      *bandwidth *= scale;
  }
  return s;
}

bool not_exercised(const Policy& policy, const PhaseResult& phase) {
  const bool promotes = policy.trigger != Policy::Trigger::none && policy.trigger != Policy::Trigger::oracle;
  return promotes && count_of(phase.counters, "promotion_committed") == 0;
}

std::uint64_t count_of(const Counters& counters, std::string_view name) {
  const auto found = std::find_if(counters.begin(), counters.end(), [&](const auto& c) { return c.first == name; });
  return found == counters.end() ? 0 : found->second;
}

}  // namespace kvlift
