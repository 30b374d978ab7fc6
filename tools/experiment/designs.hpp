// The designs side by side: one scenario, one arm for each policy, and what each of them gains and costs.
//
// A design is a named preset or a JSON file with a policy. Everything else is as the scenario's baseline arm has it.
#pragma once

#include <string>
#include <vector>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/summary.hpp"

namespace kvlift::experiment {

/// One preset of each design, without its variants; the oracle is the last.
std::vector<std::string> standard_designs();

/// The scenario with the designs for arms; `baseline` is put before them when it is not among them. A design that ends
/// in .json is a policy file, whose arm is named like the file. UserError for one that is not known or does not fit.
Scenario with_designs(const Scenario& scenario, std::vector<std::string> designs, const std::string& baseline);

/// Designs in rows and metrics in columns, for each phase. CSV and JSON have the intervals too.
std::string designs_table(const Summary& summary);
std::string designs_csv(const Summary& summary);
Json designs_json(const Summary& summary);

}  // namespace kvlift::experiment
