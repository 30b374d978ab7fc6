#include "real/run.hpp"

#include <string>

#include "core/world.hpp"
#include "real/executor.hpp"
#include "real/run_folder.hpp"

namespace kvlift::real {
namespace {

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string stand_in_text(const StandIn::Parts& parts) {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (on) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(parts.ssd, "ssd");
  add(parts.memory_and_links, "links");
  add(parts.calls, "calls");
  return text.empty() ? "nothing: every time is this machine's" : text + " of the scenario's platform";
}

}  // namespace

RunResult run(const RunPlan& plan, const RealOptions& options) {
  RunPlan here = options.size_scale == 1 ? plan : scaled(plan, options.size_scale);
  here.places = true;
  const RunFolder folder(options.folder);
  Executor executor(here, options, folder.path());
  World world(here);
  executor.run(world);
  RunResult result = world.result();
  result.performed_by = executor.describe();
  result.performed_by.emplace_back("stands in", stand_in_text(options.stand_in));
  result.performed_by.emplace_back("scale",
                                   "time " + text_of(options.time_scale) + ", size " + text_of(options.size_scale));
  return result;
}

}  // namespace kvlift::real
