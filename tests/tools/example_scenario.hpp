// A small sound scenario and a driver that makes up its results.
#pragma once

#include <string>
#include <vector>

#include "core/run.hpp"
#include "tools/experiment/scenario.hpp"

namespace kvlift::experiment {

/// Two arms, phases fill, settle, r1 (measured, 4 requests). `more` are further members of the top object.
inline std::string example_text(const std::string& more = "") {
  return R"({
  // comments are allowed
  "cluster": { "hosts": [{ "nodes": 2, "segment_bytes": "64MiB" }] },
  "engine": { "ranks": 2, "block_tokens": 100, "bytes_per_token": 1000 },
  "workload": {
    "prompt_tokens": 1000,
    "phases": [
      { "name": "fill", "prompts": 4 },
      { "name": "settle", "kind": "pause", "span_s": 5 },
      { "name": "r1", "prompts": 4, "concurrency": 2, "measured": true }
    ]
  },
  "arms": { "A": { "policy": "none" }, "B": { "policy": "rfc-4271" } })" +
         (more.empty() ? "" : ",\n  " + more) + "\n}\n";
}

inline Scenario example(const std::vector<std::string>& sets = {}, const std::string& more = "") {
  std::vector<SetOption> options;
  for (const std::string& set : sets) options.push_back(parse_set_option(set));
  return scenario_of(example_text(more), "s.json", options);
}

/// TTFT of request i of a phase: 1000 + 100 i + 10 seed milliseconds, of which a promoting policy saves a tenth.
/// It commits promotions unless `refused`.
inline RunResult made_up_run(const RunPlan& plan, bool refused = false) {
  RunResult result;
  Time now;
  for (const Phase& phase : plan.workload.phases) {
    PhaseResult out;
    out.name = phase.name;
    out.start = now;
    const bool promotes = plan.policy.trigger != Policy::Trigger::none;
    for (std::int64_t i = 0; i < phase.prompts; ++i) {
      const std::int64_t ttft = (1000 + 100 * i + 10 * static_cast<std::int64_t>(plan.seed)) * (promotes ? 9 : 10) / 10;
      RequestRecord request;
      request.id = static_cast<std::uint64_t>(i);
      request.phase = static_cast<std::uint32_t>(result.phases.size());
      request.arrival = now;
      request.queue = milliseconds(100);
      request.load_ssd = milliseconds(promotes ? 0 : 200);
      request.load_dram = milliseconds(promotes ? 50 : 0);
      request.first_step = milliseconds(20);
      request.prefill = milliseconds(ttft) - request.queue - request.load_ssd - request.load_dram - request.first_step;
      request.first_token = request.arrival + milliseconds(ttft);
      request.finish = request.first_token + milliseconds(300);
      request.input = plan.workload.prompt_tokens;
      request.output = {4};
      (promotes ? request.hit_dram : request.hit_ssd) = {400};
      out.requests.push_back(request);
      now = request.finish;
    }
    now = now + phase.span;
    out.counters = {{"promotion_committed", promotes && !refused ? 7U : 0U},
                    {"prefetch_put_running", promotes && refused ? 12U : 0U}};
    out.end = now;
    result.phases.push_back(std::move(out));
  }
  return result;
}

}  // namespace kvlift::experiment
