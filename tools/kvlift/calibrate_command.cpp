// calibrate: measures this machine and writes it down as the platform of a scenario.
#include <algorithm>
#include <memory>
#include <string>

#include "tools/experiment/byte_size.hpp"
#include "tools/experiment/number_text.hpp"
#include "tools/experiment/output_file.hpp"
#include "tools/experiment/scenario.hpp"
#include "tools/experiment/text_table.hpp"
#include "tools/kvlift/commands.hpp"
#include "tools/kvlift/experiment_command.hpp"
#include "tools/kvlift/user_error.hpp"
#ifdef KVLIFT_REAL
#include "real/calibrate.hpp"
#include "real/error.hpp"
#endif

namespace kvlift {

#ifdef KVLIFT_REAL
namespace {

namespace ex = kvlift::experiment;

struct CalibrateOptions {
  std::string folder, out, based_on = "this-machine", name = "calibrated";
  int rounds = 9;
  bool no_sync = false;
};

/// What one key weighs on one node. The platform's hosts must be this machine.
std::uint64_t object_bytes_of(const ex::Scenario& scenario) {
  std::int64_t bytes = 0;
  for (const ex::Arm& arm : scenario.arms) {
    const ex::Settings& settings = arm.settings;
    if (settings.platform.hosts.size() != 1 || settings.platform.hosts[0].count != 1)
      throw UserError("--based-on " + scenario.name + ": has more than one host; a calibration is of one machine");
    const std::int64_t block = settings.engine.block_tokens.value * settings.engine.bytes_per_token.value;
    bytes = std::max(bytes, settings.engine.ranks_share_keys ? block : block / settings.engine.ranks);
    for (const Bytes given : settings.workload.block_bytes) bytes = std::max(bytes, given.value);
  }
  constexpr std::int64_t kLeast = 4096, kMost = 16 << 20;
  return static_cast<std::uint64_t>(std::clamp(bytes, kLeast, kMost)) & ~(std::uint64_t{kLeast} - 1);
}

ex::Json platform_scenario(const real::Calibration& c, const CalibrateOptions& options, const std::string& object) {
  const auto whole = [](double value) { return ex::Json(static_cast<std::int64_t>(value)); };
  const auto us = [](Duration d) { return ex::rounded(static_cast<double>(d.ns) / 1e3, 3); };
  const std::string batch = "measured: 16 objects of " + object;
  ex::Json ssd{{"read_bandwidth_bytes_per_s", whole(c.read_bandwidth)},
               {"write_bandwidth_bytes_per_s", whole(c.write_bandwidth)},
               {"stream_bandwidth_bytes_per_s", whole(c.stream_bandwidth)},
               {"read_latency_us", us(c.read_request)},
               {"write_latency_us", us(c.write_request)}};
  ex::Json host{{"ssd", ssd},
                {"copy_bandwidth_bytes_per_s", whole(c.copy_bandwidth)},
                {"node_bandwidth_bytes_per_s", whole(c.copy_bandwidth)},
                {"node_key_time_us", 0}};
  ex::Json sources{
      {"cluster.hosts[0].ssd.read_bandwidth_bytes_per_s", batch + " on each of two nodes at a time"},
      {"cluster.hosts[0].ssd.write_bandwidth_bytes_per_s",
       batch + " as a bucket" + (options.no_sync ? "" : ", synced")},
      {"cluster.hosts[0].ssd.stream_bandwidth_bytes_per_s", batch + " read alone"},
      {"cluster.hosts[0].ssd.read_latency_us", "measured: 16 objects of 4 KiB read at a time, for each"},
      {"cluster.hosts[0].ssd.write_latency_us", "measured: a bucket of one object of 4 KiB"},
      {"cluster.hosts[0].copy_bandwidth_bytes_per_s", "measured: objects of " + object + " through the local link"},
      {"cluster.hosts[0].node_bandwidth_bytes_per_s", "the same link: this machine has no accelerator"},
      {"cluster.hosts[0].node_key_time_us", "within the measured copies"},
      {"cluster.rpc_latency_us", "the real driver's nodes are one process: calls take no time"},
      {"cluster.rpc_service_us", "the real driver's nodes are one process: calls take no time"},
      {"cluster.rpc_key_service_ns", "the real driver's nodes are one process: calls take no time"}};
  return {
      {"name", options.name},
      {"description", "based on " + options.based_on + ", on the platform that kvlift calibrate measured"},
      {"based_on", options.based_on},
      {"cluster",
       {{"hosts", ex::Json::array({host})}, {"rpc_latency_us", 0}, {"rpc_service_us", 0}, {"rpc_key_service_ns", 0}}},
      {"sources", sources}};
}

std::string report(const real::Calibration& c) {
  std::string out;
  for (const auto& [name, value] : c.performed_by) out += name + ": " + value + "\n";
  const auto us = [](Duration d) { return ex::fixed_text(static_cast<double>(d.ns) / 1e3, 1); };
  ex::TextTable reads({"SSD reads", "objects at a time", "median, us", "MB/s", "spread"});
  for (const real::ReadPoint& p : c.reads) {
    reads.add({ex::byte_size_text(static_cast<double>(p.bytes)), std::to_string(p.objects), us(p.median),
               ex::fixed_text(p.bandwidth / 1e6, 0), ex::fixed_text(p.spread * 100, 0) + " %"});
  }
  ex::TextTable rest({"others", ""});
  rest.add({"SSD reads, two nodes, MB/s", ex::fixed_text(c.read_bandwidth / 1e6, 0)});
  rest.add({"SSD writes, MB/s", ex::fixed_text(c.write_bandwidth / 1e6, 0)});
  rest.add({"a small write, us", us(c.write_request)});
  rest.add({"copies, MB/s", ex::fixed_text(c.copy_bandwidth / 1e6, 0)});
  rest.add({"a small copy, us", us(c.copy_request)});
  rest.add({"a wait of 5 ms is too long by, us", us(c.oversleep)});
  return out + reads.text() + rest.text();
}

}  // namespace
#endif

void add_calibrate_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("calibrate", "Measure this machine; write it as the platform of a scenario");
#ifdef KVLIFT_REAL
  auto options = std::make_shared<CalibrateOptions>();
  command->footer("Example: kvlift calibrate --folder DIR --out here.json && kvlift compare ./here.json --driver sim");
  command->add_option("--folder", options->folder, "Existing folder on the SSD; needs 4 GiB, which are given back")
      ->required();
  command->add_option("--out", options->out, "The scenario's file")->required();
  command->add_option("--based-on", options->based_on, "Scenario with everything else")->capture_default_str();
  command->add_option("--name", options->name, "Name of the scenario")->capture_default_str();
  command->add_option("--rounds", options->rounds, "Of each measurement; the median counts")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  command->add_flag("--no-sync", options->no_sync, "Objects count as stored before the SSD has them for good");
  command->callback([options] {
    const std::uint64_t object = object_bytes_of(ex::load_scenario(options->based_on));
    ex::OutputFile file(options->out);
    real::CalibrationSettings settings{.folder = options->folder, .object_bytes = object, .rounds = options->rounds};
    settings.sync = !options->no_sync;
    try {
      const real::Calibration measured = real::calibrate(settings);
      const std::string text =
          platform_scenario(measured, *options, ex::byte_size_text(static_cast<double>(object))).dump(2) + '\n';
      ex::scenario_of(text, options->out);  // what cannot be read is not written
      file.stream() << text;
      file.commit();
      print(report(measured));
    } catch (const real::RealError& error) {
      throw UserError(std::string("calibrate: ") + error.what());
    }
  });
#else
  command->callback([] { throw UserError("calibrate: this build has no real driver"); });
#endif
}

}  // namespace kvlift
