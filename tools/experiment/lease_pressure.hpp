// The planner's warning of RC-70: leases that pin more than DRAM holds leave no room for promotions and puts.
#pragma once

#include <optional>
#include <string>

#include "tools/experiment/settings.hpp"

namespace kvlift::experiment {

/// Bytes under lease in the steady state: every request's KV is leased for `kv_lease_ttl` after its probe. No more
/// requests than there are can be under lease.
double leased_bytes(const Settings& settings, double requests_per_s, double tokens_per_request, double requests);

/// One line when that is more than DRAM; empty otherwise.
std::optional<std::string> lease_pressure(const Settings& settings, double requests_per_s, double tokens_per_request,
                                          double requests);

}  // namespace kvlift::experiment
