// Everything one arm of an experiment runs with: core's settings, and where its requests come from.
#pragma once

#include <cstdint>
#include <string>

#include "core/engine_settings.hpp"
#include "core/platform.hpp"
#include "core/policy.hpp"
#include "core/run.hpp"
#include "core/settings.hpp"
#include "core/workload.hpp"
#include "traces/spread.hpp"

namespace kvlift::experiment {

struct TraceSettings {
  std::string path;           ///< Mooncake JSONL, plain or gzip; empty: the workload is closed loop
  Tokens block_tokens = {0};  ///< tokens that one hash id stands for; 0: not said, which is an error with a trace
  SpreadSettings::Kind spread =
      SpreadSettings::Kind::even;  ///< arrivals that share a stamp; uniform: by the run's seed
  std::int64_t requests_max = 0;   ///< stop after so many; 0: all
};

struct Settings {
  PlatformSettings platform;
  StoreSettings store;
  std::string policy_preset = "none";  ///< where `policy` started from
  Policy policy;
  EngineSettings engine;
  Workload workload;  ///< `source` stays empty: make_plan opens the trace
  TraceSettings trace;
};

/// Store processes of all hosts.
std::int64_t node_count(const PlatformSettings& platform);
/// DRAM of the pool.
Bytes dram_bytes(const PlatformSettings& platform);
/// The largest object a run stores, all ranks' share counted as the engine shares it.
Bytes largest_object(const Settings& settings);
/// KV that one closed-loop prompt keeps in the store.
Bytes prompt_bytes(const Settings& settings);

/// What a driver runs. Opens the trace, so each run needs a plan of its own. UserError when there is no trace to open;
/// what is wrong further down in a trace is a UserError of the source.
RunPlan make_plan(const Settings& settings, std::uint64_t seed);

}  // namespace kvlift::experiment
