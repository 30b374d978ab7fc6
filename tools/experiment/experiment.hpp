// Scenario x arms x seeds -> runs, each in its own process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/experiment/driver_registry.hpp"
#include "tools/experiment/scenario.hpp"

namespace kvlift::experiment {

struct ExperimentOptions {
  std::string driver = "sim";
  std::vector<std::string> arms;  ///< empty: all
  std::int64_t seeds = 0;         ///< 0: as the scenario says
  std::size_t jobs = 0;           ///< runs at the same time; 0: as many as the machine has cores
  std::function<void(std::size_t done, std::size_t all)> on_progress;
};

struct ExperimentResult {
  std::string driver;
  std::vector<std::uint64_t> seeds;
  std::vector<const Arm*> arms;              ///< of the scenario, which must live as long
  std::vector<std::vector<RunResult>> runs;  ///< [arm][seed]
};

/// Throws UserError for what the user can put right and RunError for a run that broke. The result does not depend
/// on `jobs`.
ExperimentResult run_experiment(const Scenario& scenario, const Drivers& drivers, const ExperimentOptions& options);

}  // namespace kvlift::experiment
