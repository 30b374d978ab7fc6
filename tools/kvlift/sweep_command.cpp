// sweep: compare along one parameter.
#include <memory>

#include "tools/experiment/sweep.hpp"
#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/experiment_command.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift {
namespace {

namespace ex = kvlift::experiment;

struct SweepCommand : ExperimentCommand {
  std::string scenario, vary, phase;
};

std::vector<ex::SweepPoint> sweep(const SweepCommand& options, const ex::Vary& vary) {
  // All scenarios before the first run: a bad value at the end must not cost the runs before it.
  std::vector<ex::Scenario> scenarios;
  for (const ex::Json& value : vary.values) {
    std::vector<ex::SetOption> sets = options.set_options();
    sets.push_back({vary.path, value, "--vary"});
    scenarios.push_back(ex::load_scenario(options.scenario, sets));
    if (scenarios.back().arms.size() < 2) throw UserError(scenarios.back().file + ": arms: sweep needs at least two");
    ex::require_measured(scenarios.back(), options.phase);
  }
  std::vector<ex::SweepPoint> points;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    ex::Summary summary = options.summary_of(scenarios[i], options.phase.empty());
    if (!options.phase.empty())
      std::erase_if(summary.phases, [&](const auto& phase) { return phase.name != options.phase; });
    points.push_back({vary.values[i], std::move(summary)});
  }
  return points;
}

}  // namespace

void add_sweep_command(CLI::App& program) {
  auto options = std::make_shared<SweepCommand>();
  CLI::App* command = program.add_subcommand("sweep", "The decrease of each arm along one parameter");
  command->footer(
      "Examples:\n"
      "  kvlift sweep rfc4271-a2-c4 --vary workload.phases[3].concurrency=1,2,4,8 --phase r1\n"
      "  kvlift sweep a2-c2-clean --vary cluster.hosts[0].segment_bytes=128MiB,256MiB,1GiB --format csv");
  command->add_option("SCENARIO", options->scenario, "Name of a shipped scenario, or a file")->required();
  command->add_option("--vary", options->vary, "PATH=VALUE,VALUE,...")->required();
  command->add_option("--phase", options->phase, "Only this phase (default: the measured ones)");
  options->add_options(*command, {"table", "json", "csv"});
  command->callback([options] {
    const ex::Vary vary = ex::parse_vary(options->vary);
    const std::vector<ex::SweepPoint> points = sweep(*options, vary);
    print(options->format == "json"  ? ex::sweep_json(vary, points).dump(2) + "\n"
          : options->format == "csv" ? ex::sweep_csv(vary, points)
                                     : ex::sweep_table(vary, points));
  });
}

}  // namespace kvlift
