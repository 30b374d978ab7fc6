// Rows of "workload": prompts in phases, or a trace.
#include "tools/experiment/effort.hpp"
#include "tools/experiment/parameter_row.hpp"

namespace kvlift::experiment {

using namespace row;

void add_workload_parameters(std::vector<Parameter>& out) {
  const char* none = "to be given";
  Parameter sizes =
      positive({"workload.block_bytes",
                "closed loop: sizes of a prompt's blocks, repeated in turn; empty: engine.bytes_per_token "
                "x engine.block_tokens",
                "engine.bytes_per_token"},
               "bytes", KVLIFT_FIELD(workload.block_bytes), kObjectBytesMax);
  out.insert(
      out.end(),
      {
          number({"workload.prompt_tokens", "closed loop: length of every prompt", none}, "tokens",
                 KVLIFT_FIELD(workload.prompt_tokens), 0, 1e7),
          number({"workload.prompt_output_tokens", "closed loop: tokens that each prompt generates", "one token"},
                 "tokens", KVLIFT_FIELD(workload.prompt_output), 1, static_cast<double>(kOutputMax.value)),
          std::move(sizes),
          row::row({"workload.phases[].name", "name of the phase", none}, "", KVLIFT_FIELD(workload.phases[i].name)),
          choice({"workload.phases[].kind",
                  "closed_loop: clients that ask again when answered; pause; open_loop: the trace", "closed loop"},
                 KVLIFT_CHOICE(workload.phases[i].kind), {"closed_loop", "pause", "open_loop"}),
          number({"workload.phases[].first_prompt", "closed loop: the first prompt asked; equal numbers, equal prompts",
                  "the first"},
                 "", KVLIFT_FIELD(workload.phases[i].first_prompt), 0, 1e12),
          number({"workload.phases[].prompts", "closed loop: how many prompts, each of its own blocks", none},
                 "prompts", KVLIFT_FIELD(workload.phases[i].prompts), 0, 1e7),
          number({"workload.phases[].concurrency", "closed loop: clients", "one client"}, "clients",
                 KVLIFT_FIELD(workload.phases[i].concurrency), 1, 1e6),
          span({"workload.phases[].span_s", "pause: how long", none}, "s", 1e9, KVLIFT_FIELD(workload.phases[i].span)),
          toggle({"workload.phases[].measured", "compare prints its table", "not measured"},
                 KVLIFT_FIELD(workload.phases[i].measured)),
          row::row({"workload.trace.path", "Mooncake JSONL, plain or gzip; relative to the scenario file", "no trace"},
                   "", KVLIFT_FIELD(trace.path)),
          number({"workload.trace.block_tokens", "tokens that one hash id stands for; never guessed", none}, "tokens",
                 KVLIFT_FIELD(trace.block_tokens), 0, 1e6),
          choice({"workload.trace.spread",
                  "arrivals that share a stamp: together (none), evenly until the next stamp, or at random points",
                  "assumed: a tick hides arrivals that were apart"},
                 KVLIFT_CHOICE(trace.spread), {"none", "even", "uniform"}),
          number({"workload.trace.requests_max", "stop after so many requests; 0: all", "all"}, "requests",
                 KVLIFT_FIELD(trace.requests_max), 0),
      });
}

}  // namespace kvlift::experiment
