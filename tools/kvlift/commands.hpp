// The subcommands. Each adds itself to the program and does its work in its callback: results on stdout, everything
// else on stderr, UserError for what the user can put right.
#pragma once

#include <CLI/CLI.hpp>

namespace kvlift {

void add_run_command(CLI::App& program);
void add_compare_command(CLI::App& program);
void add_replay_command(CLI::App& program);
void add_sweep_command(CLI::App& program);
void add_designs_command(CLI::App& program);
void add_scenario_command(CLI::App& program);
void add_calibrate_command(CLI::App& program);

}  // namespace kvlift
