// The decrease of each arm along one parameter: compare, once per value.
#pragma once

#include <string>
#include <vector>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/summary.hpp"

namespace kvlift::experiment {

/// "path=v1,v2,v3"; a value is read as with --set.
struct Vary {
  std::string path;
  std::vector<Json> values;
};
Vary parse_vary(const std::string& text);

/// What compare said for one value.
struct SweepPoint {
  Json value;
  Summary summary;
};

/// One row per value, phase and arm but the baseline.
std::string sweep_table(const Vary& vary, const std::vector<SweepPoint>& points);
std::string sweep_csv(const Vary& vary, const std::vector<SweepPoint>& points);
Json sweep_json(const Vary& vary, const std::vector<SweepPoint>& points);

}  // namespace kvlift::experiment
