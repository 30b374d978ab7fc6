#include "tools/experiment/request_log.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/experiment/json_text.hpp"

namespace kvlift::experiment {
namespace {

constexpr std::array<std::pair<const char*, Duration RequestRecord::*>, 6> kParts{{
    {"queue", &RequestRecord::queue},
    {"wait_promotion", &RequestRecord::wait_promotion},
    {"load_dram", &RequestRecord::load_dram},
    {"load_ssd", &RequestRecord::load_ssd},
    {"prefill", &RequestRecord::prefill},
    {"first_step", &RequestRecord::first_step},
}};

double microseconds_of(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

template <class Visit>
void for_each_run(const ExperimentResult& result, Visit visit) {
  for (std::size_t arm = 0; arm < result.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < result.seeds.size(); ++seed) {
      visit(result.arms[arm]->name, result.seeds[seed], result.runs[arm][seed]);
    }
  }
}

Json request_json(const RequestRecord& request) {
  Json out{{"id", request.id},
           {"arrival_ms", static_cast<double>(request.arrival.ns) / 1e6},
           {"first_token_ms", static_cast<double>(request.first_token.ns) / 1e6},
           {"finish_ms", static_cast<double>(request.finish.ns) / 1e6},
           {"ttft_ms", to_milliseconds(request.first_token - request.arrival)}};
  for (const auto& [name, part] : kParts) out[std::string(name) + "_ms"] = to_milliseconds(request.*part);
  out["input_tokens"] = request.input.value;
  out["output_tokens"] = request.output.value;
  out["hit_gpu_tokens"] = request.hit_gpu.value;
  out["hit_dram_tokens"] = request.hit_dram.value;
  out["hit_ssd_tokens"] = request.hit_ssd.value;
  out["load_failed"] = request.load_failed;
  return out;
}

/// Events, separated by commas.
class TraceEvents {
 public:
  explicit TraceEvents(std::ostream& out) : out_(out) {}
  void add(const Json& event) {
    out_ << (first_ ? "\n" : ",\n") << event.dump();
    first_ = false;
  }
  void span(const std::string& name, std::size_t process, std::size_t lane, std::int64_t start_ns, std::int64_t ns,
            Json arguments) {
    add({{"name", name},
         {"ph", "X"},
         {"pid", process},
         {"tid", lane},
         {"ts", microseconds_of(start_ns)},
         {"dur", microseconds_of(ns)},
         {"args", std::move(arguments)}});
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void add_request(TraceEvents& events, std::size_t process, std::size_t lane, const PhaseResult& phase,
                 const RequestRecord& request) {
  events.span(phase.name + " " + std::to_string(request.id), process, lane, request.arrival.ns,
              (request.finish - request.arrival).ns, request_json(request));
  std::int64_t at = request.arrival.ns;
  for (const auto& [name, part] : kParts) {
    const std::int64_t ns = (request.*part).ns;
    if (ns > 0) events.span(name, process, lane, at, ns, Json::object());
    at += ns;
  }
  const std::int64_t decode = (request.finish - request.first_token).ns;
  if (decode > 0) events.span("decode", process, lane, request.first_token.ns, decode, Json::object());
}

}  // namespace

void write_requests(std::ostream& out, const ExperimentResult& result) {
  for_each_run(result, [&](const std::string& arm, std::uint64_t seed, const RunResult& run) {
    for (const PhaseResult& phase : run.phases) {
      for (const RequestRecord& request : phase.requests) {
        Json line{{"arm", arm}, {"seed", seed}, {"phase", phase.name}};
        line.update(request_json(request));
        out << line.dump() << "\n";
      }
    }
  });
}

void write_timeline(std::ostream& out, const ExperimentResult& result) {
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  TraceEvents events(out);
  std::size_t process = 0;
  for_each_run(result, [&](const std::string& arm, std::uint64_t seed, const RunResult& run) {
    ++process;
    events.add({{"name", "process_name"},
                {"ph", "M"},
                {"pid", process},
                {"args", {{"name", "arm " + arm + ", seed " + std::to_string(seed)}}}});
    std::vector<Time> lane_free;
    for (const PhaseResult& phase : run.phases) {
      std::vector<const RequestRecord*> by_arrival;
      for (const RequestRecord& request : phase.requests) by_arrival.push_back(&request);
      std::stable_sort(by_arrival.begin(), by_arrival.end(), [](auto* a, auto* b) { return a->arrival < b->arrival; });
      for (const RequestRecord* request : by_arrival) {
        const auto free =
            std::find_if(lane_free.begin(), lane_free.end(), [&](Time t) { return t <= request->arrival; });
        const auto lane = static_cast<std::size_t>(free - lane_free.begin());
        if (free == lane_free.end()) lane_free.emplace_back();
        lane_free[lane] = request->finish;
        add_request(events, process, lane + 1, phase, *request);
      }
    }
  });
  out << "\n]}\n";
}

}  // namespace kvlift::experiment
