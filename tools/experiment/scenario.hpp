// A scenario: one experiment as its file describes it, checked, with the settings of every arm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/experiment/document.hpp"
#include "tools/experiment/settings.hpp"

namespace kvlift::experiment {

struct Arm {
  std::string name;
  Json overrides;  ///< as written, in long form
  Settings settings;
};

/// Figures of a real run, to be laid beside the simulated ones.
struct Measured {
  std::string source;
  /// phase -> arm -> "ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms", "duration_s" -> value
  std::map<std::string, std::map<std::string, std::map<std::string, double>>> figures;
  std::optional<double> find(const std::string& phase, const std::string& arm, const std::string& figure) const;
};

/// A value given on the command line for a path of the scenario.
struct SetOption {
  std::string path;
  Json value;
  std::string option = "--set";  ///< which complaints name
};
/// "path=value"; the value is JSON where it can be read as such, otherwise a text.
SetOption parse_set_option(const std::string& text);

struct Scenario {
  std::string name;
  std::string description;
  std::string file;        ///< as the user named it or as it was found
  std::int64_t seeds = 1;  ///< runs of each arm, seeds 1 to `seeds`
  std::string baseline;    ///< arm that the others are compared with; the first by default
  std::vector<Arm> arms;   ///< in the order of the file; "base" alone when it names none
  Measured measured;
  std::map<std::string, std::string> sources;        ///< path -> where its value comes from
  Json tree;                                         ///< all files and options merged, arms still apart
  std::vector<std::pair<std::string, Json>> layers;  ///< (file, its tree), the remotest base first
  std::vector<std::string> set_paths;

  const Arm& arm(const std::string& arm_name) const;  ///< UserError when there is none
};

/// The file of a scenario: a path, or a name looked for in $KVLIFT_CONFIGS and in the configs folder of the
/// installation or source tree. UserError, with the nearest name, when there is none.
std::string find_scenario_file(const std::string& name);

Scenario load_scenario(const std::string& name, const std::vector<SetOption>& options = {});
/// The same for a text in hand; `based_on` is looked for beside `file`.
Scenario scenario_of(const std::string& text, const std::string& file, const std::vector<SetOption>& options = {});

/// Every arm must have a phase to print: `phase`, or any that is measured when it is empty. UserError otherwise.
void require_measured(const Scenario& scenario, const std::string& phase);

/// The policy's part of check_consistency.
void check_policy(const Settings& settings, const std::string& where);

/// Whether the parts fit together; UserError "`where`: PATH: ..." for the first that does not.
void check_consistency(const Settings& settings, const std::string& where);

}  // namespace kvlift::experiment
