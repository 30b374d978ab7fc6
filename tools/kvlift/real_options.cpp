#include "tools/kvlift/real_options.hpp"

#include "tools/kvlift/user_error.hpp"

namespace kvlift {

namespace {
constexpr const char* kGroup = "With --driver real";
}

void RealCommand::add_options(CLI::App& command) {
  command_ = &command;
  command.add_option("--folder", folder, "Existing folder on the SSD to use; what a run makes there it removes")
      ->group(kGroup);
  command.add_option("--time-scale", time_scale, "Seconds of the scenario in one of this machine's")
      ->check(CLI::Range(1e-3, 1e3))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--size-scale", size_scale, "Bytes moved for one of the scenario's; bandwidths scale along")
      ->check(CLI::Range(1e-6, 1e3))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--stand-in", stand_in, "Wait for these devices of the scenario's platform as well")
      ->delimiter(',')
      ->check(CLI::IsMember({"ssd", "links", "calls", "all"}))
      ->group(kGroup);
  command.add_flag("--no-sync", no_sync, "Objects count as stored before the SSD has them for good")->group(kGroup);
  command.add_flag("--strict", strict, "Fail rather than go without io_uring, registered buffers or direct I/O")
      ->group(kGroup);
}

void RealCommand::check(const std::string& driver) const {
  if (driver == "real") {
    if (folder.empty()) throw UserError("--driver real: needs --folder, an existing folder on the SSD to use");
    return;
  }
  for (const CLI::Option* option : command_->get_options()) {
    if (option->get_group() == kGroup && option->count() > 0)
      throw UserError(option->get_name() + ": only with --driver real");
  }
}

}  // namespace kvlift
