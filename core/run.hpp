// One run: what goes into a driver and what comes out. Every driver takes the same plan and fills the same result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine_settings.hpp"
#include "core/platform.hpp"
#include "core/policy.hpp"
#include "core/settings.hpp"
#include "core/workload.hpp"

namespace kvlift {

struct RunPlan {
  StoreSettings store;
  Policy policy;
  PlatformSettings platform;
  EngineSettings engine;
  Workload workload;
  std::uint64_t seed = 1;
  bool places = false;  ///< the driver moves bytes: effects say from where to where
};

/// TTFT of one request and where it went. The parts add up to first_token - arrival exactly.
struct RequestRecord {
  std::uint64_t id = 0;
  std::uint32_t phase = 0;
  Time arrival, first_token, finish;  ///< on the driver's clock
  Duration queue;                     ///< waiting for a place, a step, or another request's load
  Duration load_dram, load_ssd;       ///< moving KV, by the tier it came from
  Duration wait_promotion;            ///< get waited for a live promotion
  Duration prefill;                   ///< computing what was not loaded
  Duration first_step;                ///< fixed cost of the step that gave the first token
  Tokens input, output;
  Tokens hit_gpu, hit_dram, hit_ssd;  ///< tokens of the prompt by the tier they came from; the rest was computed
  bool load_failed = false;           ///< a load failed and its tokens were computed again
};

/// A named count; the order is fixed by the code that makes the list.
using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

struct PhaseResult {
  std::string name;
  Time start, end;
  std::vector<RequestRecord> requests;
  Counters counters;                              ///< what the phase added
  double dram_used_start = 0, dram_used_end = 0;  ///< share of DRAM allocated
  double dram_above_watermark = 0;                ///< share of those samples with more allocated than the watermark
  double dram_leased_mean = 0;                    ///< share of DRAM under lease, mean of samples at arrivals
};

struct RunResult {
  std::vector<PhaseResult> phases;
  std::uint64_t trace_hash = 0;  ///< over every completion and its time: equal runs, equal hash
  std::uint64_t effects = 0;     ///< performed by the driver
  /// What a driver that moves bytes did it with, by name; empty from one that only models time.
  std::vector<std::pair<std::string, std::string>> performed_by = {};
};

/// The same experiment with every size and every bandwidth times `scale` > 0, so that what takes time takes as long
/// as before. Sizes are rounded up to a byte. What is fixed at any size (4 KiB of alignment, the staging's slack)
/// weighs more in a smaller one.
RunPlan scaled(const RunPlan& plan, double scale);

/// True when the policy can promote and no promotion was committed in `phase` (RC-69).
bool not_exercised(const Policy& policy, const PhaseResult& phase);
/// The count of that name; 0 when absent.
std::uint64_t count_of(const Counters& counters, std::string_view name);

}  // namespace kvlift
