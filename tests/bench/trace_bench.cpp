// What reading, writing, making and describing a trace costs, for a trace of the published conversation trace's size.
//
//   kvlift_trace_bench [--benchmark_filter=read]
//
// Reads the published trace where it is (KVLIFT_SHARED names the folder above traces/), else the generator's default.
// Target: read_plain well under 100 ms.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "traces/generator.hpp"
#include "traces/info.hpp"
#include "traces/reader.hpp"
#include "traces/spread.hpp"
#include "traces/writer.hpp"

namespace kvlift {
namespace {

constexpr Tokens kBlock{512};

std::string generated_text(double scale = 1) {
  GeneratorSettings settings;
  settings.scale = scale;
  Generator generator(settings);
  std::string text;
  for (TraceRequest request; generator.next(request);) append_line(request, text);
  return text;
}

const std::string& trace_text() {
  static const std::string text = [] {
    const char* shared = std::getenv("KVLIFT_SHARED");
    if (shared != nullptr) {
      std::ifstream file(std::filesystem::path(shared) / "traces" / "conversation_trace.jsonl");
      if (file) return std::string(std::istreambuf_iterator<char>(file), {});
    }
    return generated_text();
  }();
  return text;
}

/// A file that is gone at the end.
class TraceFile {
 public:
  explicit TraceFile(Packing packing)
      : path_((std::filesystem::temp_directory_path() / "kvlift_trace_bench.jsonl").string()) {
    TraceReader reader(bytes_in_memory(trace_text(), "trace"), "trace", kBlock);
    TraceWriter writer(path_, packing);
    for (TraceRequest request; reader.next(request);) writer.write(request);
    writer.commit();
  }
  ~TraceFile() { std::filesystem::remove(path_); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void count_ids(benchmark::State& state, std::int64_t requests, std::int64_t ids) {
  state.counters["requests"] = static_cast<double>(requests);
  state.counters["ids"] = static_cast<double>(ids);
}

void read(benchmark::State& state, Packing packing) {
  const TraceFile file(packing);
  std::int64_t requests = 0, ids = 0;
  for (auto _ : state) {
    TraceReader reader(file.path(), kBlock);
    requests = ids = 0;
    for (TraceRequest request; reader.next(request); ++requests)
      ids += static_cast<std::int64_t>(request.hash_ids.size());
  }
  count_ids(state, requests, ids);
}

/// The JSON library alone: what the fast way through a line is measured against.
void parse_by_library(benchmark::State& state) {
  LineParser parser(kBlock);
  TraceRequest request;
  for (auto _ : state) {
    LineReader lines(bytes_in_memory(trace_text(), "trace"), "trace", TraceReader::kLineBytesMax);
    for (std::string_view line; lines.next(line);) benchmark::DoNotOptimize(parser.parse_json(line, request));
  }
}

void spread_evenly(benchmark::State& state) {
  for (auto _ : state) {
    TraceReader reader(bytes_in_memory(trace_text(), "trace"), "trace", kBlock);
    Spreader spreader([&](TraceRequest& request) { return reader.next(request); }, {SpreadSettings::Kind::even});
    for (TraceRequest request; spreader.next(request);) benchmark::DoNotOptimize(request.arrival);
  }
}

void describe_trace(benchmark::State& state) {
  for (auto _ : state) {
    TraceReader reader(bytes_in_memory(trace_text(), "trace"), "trace", kBlock);
    benchmark::DoNotOptimize(describe(reader).hits);
  }
}

void write(benchmark::State& state, Packing packing) {
  std::vector<TraceRequest> requests;
  TraceReader reader(bytes_in_memory(trace_text(), "trace"), "trace", kBlock);
  for (TraceRequest request; reader.next(request);) requests.push_back(request);
  const std::string path = (std::filesystem::temp_directory_path() / "kvlift_trace_bench.jsonl").string();
  for (auto _ : state) {
    TraceWriter writer(path, packing);
    for (const TraceRequest& request : requests) writer.write(request);
    writer.commit();
  }
  std::filesystem::remove(path);
}

/// The argument is a percentage of the default's requests.
void generate(benchmark::State& state) {
  GeneratorSettings settings;
  settings.scale = static_cast<double>(state.range(0)) / 100;
  for (auto _ : state) {
    Generator generator(settings);
    for (TraceRequest request; generator.next(request);) benchmark::DoNotOptimize(request.arrival);
  }
  state.counters["us_per_request"] =
      benchmark::Counter(static_cast<double>(settings.requests_total()) * 1e-6,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(read, read_plain, Packing::plain)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, read_gzip, Packing::gzip)->Unit(benchmark::kMillisecond);
BENCHMARK(parse_by_library)->Unit(benchmark::kMillisecond);
BENCHMARK(spread_evenly)->Unit(benchmark::kMillisecond);
BENCHMARK(describe_trace)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, write_plain, Packing::plain)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, write_gzip, Packing::gzip)->Unit(benchmark::kMillisecond);
BENCHMARK(generate)->Arg(25)->Arg(50)->Arg(100)->Arg(400)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvlift
