// The options of `--driver real`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kvlift {

/// As given; what they mean is in real/options.hpp.
struct RealCommand {
  std::string folder;
  double time_scale = 1;
  double size_scale = 1;
  std::vector<std::string> stand_in;
  bool no_sync = false;
  bool strict = false;

  void add_options(CLI::App& command);
  /// UserError when an option of the real driver is given to another, or the driver lacks one.
  void check(const std::string& driver) const;

 private:
  const CLI::App* command_ = nullptr;
};

}  // namespace kvlift
