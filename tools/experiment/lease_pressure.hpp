// The planner's warning of RC-70: leases that pin more than DRAM holds leave no room for promotions and puts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/experiment/scenario.hpp"

namespace kvlift::experiment {

/// Bytes under lease in the steady state: every request's KV is leased for `kv_lease_ttl` after its probe. No more
/// requests than there are can be under lease.
double leased_bytes(const Settings& settings, double requests_per_s, double tokens_per_request, double requests);

/// One line when that is more than DRAM; empty otherwise.
std::optional<std::string> lease_pressure(const Settings& settings, double requests_per_s, double tokens_per_request,
                                          double requests);

/// The same before a run, for the worst phase of each of the arms named (none named: all). A closed
/// loop's rate is estimated, a trace's is that of its beginning. UserError for a trace that cannot be read.
std::vector<std::string> lease_warnings(const Scenario& scenario, const std::vector<std::string>& arms);

}  // namespace kvlift::experiment
