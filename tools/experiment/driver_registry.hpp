// Drivers by name: what carries a plan out. The program registers those it links; tests register their own.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/run.hpp"

namespace kvlift::experiment {

using Driver = std::function<RunResult(const RunPlan&)>;
using Drivers = std::map<std::string, Driver>;

/// The driver of that name; UserError with the nearest name when there is none.
const Driver& find_driver(const Drivers& drivers, const std::string& name);

}  // namespace kvlift::experiment
