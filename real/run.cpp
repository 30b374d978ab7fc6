#include "real/run.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "core/world.hpp"
#include "real/error.hpp"
#include "real/executor.hpp"

namespace kvlift::real {
namespace {

/// A new folder in `parent`, gone with everything in it at the end.
class RunFolder {
 public:
  explicit RunFolder(const std::string& parent) : path_(parent + "/kvlift-run-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw RealError("folder " + parent + " cannot be written", errno);
  }
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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
