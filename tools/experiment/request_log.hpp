// Runs request by request: JSON lines for analysis, a Chrome trace for looking at (chrome://tracing, Perfetto).
#pragma once

#include <ostream>

#include "tools/experiment/experiment.hpp"

namespace kvlift::experiment {

/// One line per request: arm, seed, phase, id, times since the start of the run, TTFT and its parts, tokens by tier.
void write_requests(std::ostream& out, const ExperimentResult& result);

/// Trace Event Format: a process per arm and seed, and lanes in which requests do not overlap. A request is a span
/// with its waits and work inside, one after another in the order of the breakdown: how long is exact, when inside
/// the request is not.
void write_timeline(std::ostream& out, const ExperimentResult& result);

}  // namespace kvlift::experiment
