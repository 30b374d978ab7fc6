// kvlift: what moving KV from SSD to DRAM at the probe does to the time to first token.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>

#include "tools/experiment/report.hpp"
#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/trace_command.hpp"
#include "tools/kvlift/user_error.hpp"

namespace {

enum Exit : int { kDone = 0, kFailed = 1, kUserError = 2 };

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void add_everything(CLI::App& program) {
  program.require_subcommand(1);
  program.set_version_flag("--version", "kvlift " + kvlift::experiment::version_text());
  program.add_flag_callback(
      "--quiet", [] { spdlog::set_level(spdlog::level::err); }, "No progress, no remarks; errors only");
  program.footer(
      "Examples:\n"
      "  kvlift compare a2-c2-clean\n"
      "  kvlift replay conversation_trace.jsonl --config conversation-hour\n"
      "  kvlift scenario explain rfc4271-a2-c4\n"
      "Results go to stdout, logs to stderr. Exit status: 0 done, 1 a run failed, 2 something to put right.");
  kvlift::add_run_command(program);
  kvlift::add_compare_command(program);
  kvlift::add_replay_command(program);
  kvlift::add_sweep_command(program);
  kvlift::add_designs_command(program);
  kvlift::add_scenario_command(program);
  kvlift::add_trace_command(program);
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_st("kvlift"));
  spdlog::set_pattern("%n: %l: %v");
  CLI::App program("What SSD->DRAM prefetch at the cache probe does to the time to first token (TTFT)", "kvlift");
  try {
    add_everything(program);
    program.parse(argc, argv);
    return kDone;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return program.exit(error);
    spdlog::error("{} (see kvlift --help)", one_line(error.what()));
    return kUserError;
  } catch (const kvlift::UserError& error) {
    spdlog::error("{}", one_line(error.what()));
    return kUserError;
  } catch (const std::exception& error) {
    spdlog::error("{}", one_line(error.what()));
    return kFailed;
  }
}
