// designs: every design of promotion in one scenario.
#include <memory>

#include "core/policy.hpp"
#include "tools/experiment/designs.hpp"
#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/experiment_command.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift {
namespace {

namespace ex = kvlift::experiment;

struct DesignsCommand : ExperimentCommand {
  std::string scenario, trace, baseline = "none";
  std::vector<std::string> designs;
};

ex::Scenario scenario_of(const DesignsCommand& options) {
  std::vector<ex::SetOption> sets = options.set_options();
  for (const ex::SetOption& set : sets) {
    if (set.path.starts_with("arms.") || set.path == "policy" || set.path.starts_with("policy."))
      throw UserError("--set: " + set.path +
                      ": has no effect, each design is an arm with a policy of its own; write "
                      "the policy into a file and name it in --designs");
  }
  if (!options.trace.empty()) sets.push_back({"workload.trace.path", options.trace, "--trace"});
  std::vector<std::string> designs = options.designs;
  if (designs.empty()) designs = ex::standard_designs();
  if (designs == std::vector<std::string>{"all"})
    designs.assign(policy_preset_names().begin(), policy_preset_names().end());
  return ex::with_designs(ex::load_scenario(options.scenario, sets), designs, options.baseline);
}

}  // namespace

void add_designs_command(CLI::App& program) {
  auto options = std::make_shared<DesignsCommand>();
  CLI::App* command = program.add_subcommand("designs", "Every design of promotion side by side, in one scenario");
  command->footer(
      "Examples:\n"
      "  kvlift designs rfc4271-a2-c4 --seeds 5\n"
      "  kvlift designs conversation-hour --trace conversation_trace.jsonl --designs all --format csv\n"
      "  kvlift designs a2-c2-clean --designs rfc-4271,mine.json --baseline rfc-4271\n"
      "A design is a preset (`kvlift scenario schema` lists them under policy.preset) or a JSON file with the fields\n"
      "of a policy, e.g. {\"preset\": \"rfc-4271\", \"on_full\": \"swap\"}.");
  command->add_option("SCENARIO", options->scenario, "Name of a shipped scenario, or a file")->required();
  command->add_option("--designs", options->designs, "NAME or FILE.json, ...; all: every preset and variant")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--baseline", options->baseline, "The design that the others are compared with")
      ->capture_default_str();
  command->add_option("--trace", options->trace, "Mooncake JSONL, where the scenario replays one");
  options->add_options(*command, {"table", "json", "csv"});
  command->callback([options] {
    const ex::Scenario scenario = scenario_of(*options);
    ex::require_measured(scenario, "");
    const ex::Summary summary = options->summary_of(scenario, true);
    print(options->format == "json"  ? ex::designs_json(summary).dump(2) + "\n"
          : options->format == "csv" ? ex::designs_csv(summary)
                                     : ex::designs_table(summary));
  });
}

}  // namespace kvlift
