// A summary as text: JSON for programs, tables for people. The same runs give the same bytes.
#pragma once

#include <string>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/summary.hpp"

namespace kvlift::experiment {

/// {"scenario", "version", "driver", "seeds", "baseline", "phases": {NAME: {"arms": {NAME: {...}}, "decrease",
/// "exercised", "notes"}}}, and from a driver that moves bytes "performed_by": [{"arm", "seed", "with": {NAME: TEXT}}].
/// Over several seeds each figure X has its half interval beside it, as X_ci95; groups of figures (ttft_breakdown_ms,
/// counters, ...) have a group of them.
Json report_json(const Summary& summary);

/// Simulated beside measured, TTFT split into its parts, tokens by tier, counters by reason.
std::string report_table(const Summary& summary, const Measured& measured);

/// Program version, with the commit where the build knew it.
std::string version_text();

}  // namespace kvlift::experiment
