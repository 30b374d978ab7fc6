// scenario check | explain | schema
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/experiment/explain.hpp"
#include "tools/experiment/lease_pressure.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/schema.hpp"
#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/experiment_command.hpp"

namespace kvlift {
namespace {

namespace ex = kvlift::experiment;

struct ScenarioOptions {
  std::vector<std::string> scenarios;
  std::vector<std::string> sets;
  std::string arm, format = "table";
  bool all = false;

  std::vector<ex::SetOption> set_options() const {
    std::vector<ex::SetOption> options;
    for (const std::string& text : sets) options.push_back(ex::parse_set_option(text));
    return options;
  }
};

void add_check(CLI::App& group) {
  auto options = std::make_shared<ScenarioOptions>();
  CLI::App* command = group.add_subcommand("check", "Read scenarios and say whether they are sound");
  command->add_option("SCENARIO", options->scenarios, "Names or files")->required();
  command->add_option("--set", options->sets, "PATH=VALUE over the scenarios")->allow_extra_args(false);
  command->callback([options] {
    std::string out;
    for (const std::string& name : options->scenarios) {
      const ex::Scenario scenario = ex::load_scenario(name, options->set_options());
      for (const std::string& warning : ex::lease_warnings(scenario, {}))
        spdlog::warn("{}: {}", scenario.name, warning);
      out += scenario.name + ": ok, " + std::to_string(scenario.arms.size()) + " arms, " +
             std::to_string(scenario.seeds) + (scenario.seeds == 1 ? " seed\n" : " seeds\n");
    }
    print(out);
  });
}

void add_explain(CLI::App& group) {
  auto options = std::make_shared<ScenarioOptions>();
  CLI::App* command = group.add_subcommand("explain", "Every parameter with its value, unit and origin");
  command->footer(
      "Examples:\n"
      "  kvlift scenario explain a2-c2-clean --arm B\n"
      "  kvlift scenario explain a2-c2-clean --all --format json");
  command->add_option("SCENARIO", options->scenarios, "Name or file")->required()->expected(1);
  command->add_option("--arm", options->arm, "The arm (default: the baseline)");
  command->add_option("--set", options->sets, "PATH=VALUE over the scenario")->allow_extra_args(false);
  command->add_flag("--all", options->all, "Defaults too");
  command->add_option("--format", options->format, "How to print")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options] {
    const ex::Scenario scenario = ex::load_scenario(options->scenarios.front(), options->set_options());
    const ex::Arm& arm = scenario.arm(options->arm.empty() ? scenario.baseline : options->arm);
    print(options->format == "json" ? ex::explain_json(scenario, arm, options->all).dump(2) + "\n"
                                    : ex::explain_table(scenario, arm, options->all));
  });
}

void add_schema(CLI::App& group) {
  auto options = std::make_shared<ScenarioOptions>();
  CLI::App* command = group.add_subcommand("schema", "Every field a scenario can have");
  command->add_option("--format", options->format, "table, markdown, or json: a JSON Schema for editors")
      ->check(CLI::IsMember({"table", "markdown", "json"}))
      ->capture_default_str();
  command->callback([options] {
    print(options->format == "json"       ? ex::schema_json().dump(2) + "\n"
          : options->format == "markdown" ? ex::schema_markdown()
                                          : ex::schema_table());
  });
}

}  // namespace

void add_scenario_command(CLI::App& program) {
  CLI::App* group = program.add_subcommand("scenario", "Check, explain and document scenario files");
  group->require_subcommand(1);
  add_check(*group);
  add_explain(*group);
  add_schema(*group);
}

}  // namespace kvlift
