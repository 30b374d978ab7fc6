// kvlift: what moving KV from SSD to DRAM at the probe does to the time to first token.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
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
  // What a message repeats from a file must not reach the terminal as a command.
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

/// What no option of any subcommand can mean: an empty text, a number that is none.
void refuse_void_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const bool is_number = option->get_type_name().starts_with("FLOAT");
    const auto wrong = [is_number](const std::string& text) -> std::string {
      if (text.empty()) return "must not be empty";
      return is_number && !std::isfinite(std::strtod(text.c_str(), nullptr)) ? text + " is not a number" : "";
    };
    if (option->get_items_expected_max() > 0) option->check(wrong);
  }
  for (CLI::App* subcommand : app.get_subcommands({})) refuse_void_values(*subcommand);
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
  kvlift::add_calibrate_command(program);
  kvlift::add_trace_command(program);
  refuse_void_values(program);
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
