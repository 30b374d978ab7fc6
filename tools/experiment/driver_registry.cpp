#include "tools/experiment/driver_registry.hpp"

#include <vector>

#include "tools/experiment/nearest.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {

const Driver& find_driver(const Drivers& drivers, const std::string& name) {
  const auto found = drivers.find(name);
  if (found != drivers.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, driver] : drivers) names.push_back(known);
  std::string listed;
  for (const std::string& known : names) listed += (listed.empty() ? "" : ", ") + known;
  throw UserError("--driver: no driver \"" + name + "\"" + did_you_mean(name, names) + " (there are: " + listed + ")");
}

}  // namespace kvlift::experiment
