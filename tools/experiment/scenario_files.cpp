// Where scenario files are.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/experiment/nearest.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

namespace fs = std::filesystem;

/// Folders to search, in order.
std::vector<fs::path> config_folders() {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("KVLIFT_CONFIGS"); named != nullptr && *named != '\0')
    folders.emplace_back(named);
  // An installed program has them in ../share/kvlift/configs, one in a build tree somewhere above itself.
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); !error && folder.has_relative_path(); folder = folder.parent_path()) {
    folders.push_back(folder / "share" / "kvlift" / "configs");
    folders.push_back(folder / "configs");
  }
#ifdef KVLIFT_CONFIG_DIR
  folders.emplace_back(KVLIFT_CONFIG_DIR);
#endif
  return folders;
}

std::vector<std::string> known_names(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

std::string find_scenario_file(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return name;
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  if (is_path) throw UserError(name + ": cannot be read: " + std::strerror(ENOENT));
  const std::vector<fs::path> folders = config_folders();
  for (const fs::path& folder : folders) {
    const fs::path file = folder / (name + ".json");
    if (fs::is_regular_file(file, error)) return file.string();
  }
  throw UserError(name + ": no such scenario" + did_you_mean(name, known_names(folders)));
}

Scenario load_scenario(const std::string& name, const std::vector<SetOption>& options) {
  const std::string file = find_scenario_file(name);
  return scenario_of(read_text_file(file), file, options);
}

}  // namespace kvlift::experiment
