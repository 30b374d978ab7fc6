// What run, compare, replay, sweep and designs have in common: their options, and carrying an experiment out.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiment/experiment.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/summary.hpp"
#include "tools/kvlift/real_options.hpp"

namespace kvlift {

/// Options as given; add_options binds them to a subcommand.
struct ExperimentCommand {
  std::string driver = "sim";
  std::vector<std::string> arms;
  std::int64_t seeds = 0;
  std::size_t jobs = 0;
  std::vector<std::string> sets;
  std::string format = "table";
  std::string out_folder, timeline_file, requests_file;
  std::optional<double> slo_ttft_ms;
  RealCommand real;

  /// --driver, --seeds, --jobs, --set, --format, --slo-ttft-ms
  void add_options(CLI::App& command, std::vector<std::string> formats = {"table", "json"});
  /// --out, --timeline, --requests
  void add_file_options(CLI::App& command);

  experiment::ExperimentOptions experiment_options() const;
  std::vector<experiment::SetOption> set_options() const;
  /// Runs, writes the files that were asked for, prints the summary.
  experiment::Summary carry_out(const experiment::Scenario& scenario, bool measured_only) const;
  /// Runs and summarises; prints and writes nothing.
  experiment::Summary summary_of(const experiment::Scenario& scenario, bool measured_only) const;
};

/// Whole or not at all: an error when stdout does not take the text.
void print(const std::string& text);

}  // namespace kvlift
