// Every parameter of a scenario with its value, and where the value comes from.
#pragma once

#include <string>
#include <vector>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/parameter.hpp"
#include "tools/experiment/scenario.hpp"

namespace kvlift::experiment {

struct Explanation {
  std::string path;
  const Parameter* parameter = nullptr;
  Json value;
  std::string origin;  ///< "default", "preset NAME", a file's name, "arm NAME" or "--set"
  std::string source;  ///< what the scenario says, or the default's source; empty when nobody says
  bool assumed() const { return source.starts_with("assumed"); }
  bool is_default() const { return origin == "default" || origin.starts_with("preset "); }
};

/// In the order of the file.
std::vector<Explanation> explain(const Scenario& scenario, const Arm& arm);

/// `all`: defaults too.
std::string explain_table(const Scenario& scenario, const Arm& arm, bool all);
Json explain_json(const Scenario& scenario, const Arm& arm, bool all);

}  // namespace kvlift::experiment
