// run, compare and replay: one scenario, its arms, its table.
#include <spdlog/spdlog.h>

#include <memory>

#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/experiment_command.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift {
namespace {

namespace ex = kvlift::experiment;

struct ScenarioCommand : ExperimentCommand {
  std::string scenario, trace;
};

/// The scenario may name a trace of its own, for `run`; an arm's own is another experiment.
void say_what_is_replaced(const ex::Scenario& scenario) {
  for (const ex::Arm& arm : scenario.arms) {
    if (ex::node_at(arm.overrides, "workload.trace.path") != nullptr)
      throw UserError(scenario.file + ": arms." + arm.name +
                      ".workload.trace.path: replay runs one trace in every arm");
  }
  for (const auto& [file, tree] : scenario.layers) {
    if (ex::node_at(tree, "workload.trace.path") != nullptr)
      spdlog::warn("{}: workload.trace.path is replaced by TRACE", file);
  }
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<ScenarioCommand>();
  CLI::App* command = program.add_subcommand("run", "Run a scenario and print every phase");
  command->footer(
      "Examples:\n"
      "  kvlift run a2-c2-clean --arm A\n"
      "  kvlift run my.json --seeds 5 --set store.master.kv_lease_ttl_ms=2000 --out results");
  command->add_option("SCENARIO", options->scenario, "Name of a shipped scenario, or a file")->required();
  command->add_option("--arm", options->arms, "Only this arm; may be given several times")->allow_extra_args(false);
  options->add_options(*command);
  options->add_file_options(*command);
  command->callback(
      [options] { options->carry_out(ex::load_scenario(options->scenario, options->set_options()), false); });
}

void add_compare_command(CLI::App& program) {
  auto options = std::make_shared<ScenarioCommand>();
  CLI::App* command = program.add_subcommand("compare", "Compare the arms of a scenario in its measured phases");
  command->footer(
      "Examples:\n"
      "  kvlift compare a2-c2-clean\n"
      "  kvlift compare rfc4271-a2-c4 --seeds 5 --format json");
  command->add_option("SCENARIO", options->scenario, "Name of a shipped scenario, or a file")->required();
  options->add_options(*command);
  options->add_file_options(*command);
  command->callback([options] {
    const ex::Scenario scenario = ex::load_scenario(options->scenario, options->set_options());
    if (scenario.arms.size() < 2) throw UserError(scenario.file + ": arms: compare needs at least two");
    ex::require_measured(scenario, "");
    options->carry_out(scenario, true);
  });
}

void add_replay_command(CLI::App& program) {
  auto options = std::make_shared<ScenarioCommand>();
  options->scenario = "conversation-hour";
  CLI::App* command = program.add_subcommand("replay", "Replay a request trace at its arrival times, with every arm");
  command->footer(
      "Examples:\n"
      "  kvlift replay conversation_trace.jsonl\n"
      "  kvlift replay trace.jsonl.gz --config my.json --slo-ttft-ms 2000 --format json");
  command->add_option("TRACE", options->trace, "Mooncake JSONL, plain or gzip")->required();
  command->add_option("--config", options->scenario, "Scenario with an open_loop phase")->capture_default_str();
  command->add_option("--arm", options->arms, "Only this arm; may be given several times")->allow_extra_args(false);
  options->add_options(*command);
  options->add_file_options(*command);
  command->callback([options] {
    std::vector<ex::SetOption> sets = options->set_options();
    for (const ex::SetOption& set : sets) {
      if (set.path.ends_with("workload.trace.path"))
        throw UserError("--set: " + set.path + ": replay takes the trace as its argument");
    }
    sets.push_back({"workload.trace.path", options->trace, "TRACE"});
    const ex::Scenario scenario = ex::load_scenario(options->scenario, sets);
    ex::require_measured(scenario, "");
    say_what_is_replaced(scenario);
    options->carry_out(scenario, true);
  });
}

}  // namespace kvlift
