#include "tools/experiment/lease_pressure.hpp"

#include <algorithm>

#include "tools/experiment/byte_size.hpp"
#include "tools/experiment/number_text.hpp"

namespace kvlift::experiment {
namespace {

double request_bytes(const Settings& settings, double tokens) {
  if (!settings.workload.block_bytes.empty()) return static_cast<double>(prompt_bytes(settings).value);
  return tokens * static_cast<double>(settings.engine.bytes_per_token.value);
}

}  // namespace

double leased_bytes(const Settings& settings, double requests_per_s, double tokens_per_request, double requests) {
  const double under_lease = std::min(requests, requests_per_s * to_seconds(settings.store.master.kv_lease_ttl));
  return under_lease * request_bytes(settings, tokens_per_request);
}

std::optional<std::string> lease_pressure(const Settings& settings, double requests_per_s, double tokens_per_request,
                                          double requests) {
  const double leased = leased_bytes(settings, requests_per_s, tokens_per_request, requests);
  const double dram = static_cast<double>(dram_bytes(settings.platform).value);
  if (settings.policy.probe_lease == Policy::ProbeLease::none || leased <= dram) return std::nullopt;
  const double per_request = request_bytes(settings, tokens_per_request);
  return "a lease of " + number_text(to_seconds(settings.store.master.kv_lease_ttl)) + " s x " +
         fixed_text(requests_per_s, 2) + " requests/s x " + byte_size_text(per_request) + " pins " +
         byte_size_text(rounded(leased, 0)) + ", more than the " + byte_size_text(dram) +
         " of DRAM: promotions and puts find no room";
}

}  // namespace kvlift::experiment
