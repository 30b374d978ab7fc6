// How much a run would simulate, before it starts: a value that is possible alone can ask for days of computing.
//
// Periodic work of the store goes on as long as simulated time does, so a long pause, or a device so slow that a
// prompt takes hours, costs as much as many requests. The estimate is rough and errs upwards; its limits are far above
// any sensible experiment (a run of a minute or so), and a trace, whose size is the user's, has wider ones.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tools/experiment/settings.hpp"

namespace kvlift::experiment {

/// Tokens that one request may generate.
inline constexpr Tokens kOutputMax{1'000'000};

/// The phase that asks for too much, as a path, and why.
std::optional<std::pair<std::string, std::string>> too_much(const Settings& settings);

/// Requests a second that a closed-loop phase reaches when nobody waits for anybody: rough, and at most. `cached`: its
/// prompts were asked before and are on the SSD.
double requests_per_s_max(const Settings& settings, const Phase& phase, bool cached);

/// Up to here a request of a trace may arrive.
Time arrival_max(const Settings& settings);

}  // namespace kvlift::experiment
