#include "tools/experiment/result_bytes.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace kvlift::experiment {
namespace {

static_assert(std::is_trivially_copyable_v<RequestRecord>);

class Writer {
 public:
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    value(text.size());
    bytes.append(text);
  }
  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  void take(void* into, std::size_t size) {
    if (size > bytes_.size()) throw std::runtime_error("the result of a run is cut short");
    if (size != 0) std::memcpy(into, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  template <class T>
  void value(T& value) {
    take(&value, sizeof value);
  }
  /// A length that the rest can hold, so that bad bytes cannot ask for all memory.
  std::size_t length(std::size_t element) {
    std::size_t count = 0;
    value(count);
    if (count > bytes_.size() / element) throw std::runtime_error("the result of a run is cut short");
    return count;
  }
  void text(std::string& text) {
    text.resize(length(1));
    take(text.data(), text.size());
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(const RunResult& result) {
  Writer out;
  out.value(result.trace_hash);
  out.value(result.effects);
  out.value(result.performed_by.size());
  for (const auto& [name, text] : result.performed_by) {
    out.text(name);
    out.text(text);
  }
  out.value(result.phases.size());
  for (const PhaseResult& phase : result.phases) {
    out.text(phase.name);
    out.value(phase.start);
    out.value(phase.end);
    out.value(phase.dram_used_start);
    out.value(phase.dram_used_end);
    out.value(phase.dram_leased_mean);
    out.value(phase.dram_above_watermark);
    out.value(phase.counters.size());
    for (const auto& [name, count] : phase.counters) {
      out.text(name);
      out.value(count);
    }
    out.value(phase.requests.size());
    out.bytes.append(reinterpret_cast<const char*>(phase.requests.data()),
                     phase.requests.size() * sizeof(RequestRecord));
  }
  return std::move(out.bytes);
}

RunResult result_from_bytes(std::string_view bytes) {
  Reader in(bytes);
  RunResult result;
  in.value(result.trace_hash);
  in.value(result.effects);
  result.performed_by.resize(in.length(sizeof(std::size_t)));
  for (auto& [name, text] : result.performed_by) {
    in.text(name);
    in.text(text);
  }
  result.phases.resize(in.length(sizeof(Time)));
  for (PhaseResult& phase : result.phases) {
    in.text(phase.name);
    in.value(phase.start);
    in.value(phase.end);
    in.value(phase.dram_used_start);
    in.value(phase.dram_used_end);
    in.value(phase.dram_leased_mean);
    in.value(phase.dram_above_watermark);
    phase.counters.resize(in.length(sizeof(std::uint64_t)));
    for (auto& [name, count] : phase.counters) {
      in.text(name);
      in.value(count);
    }
    phase.requests.resize(in.length(sizeof(RequestRecord)));
    in.take(phase.requests.data(), phase.requests.size() * sizeof(RequestRecord));
  }
  if (!in.empty()) throw std::runtime_error("the result of a run has bytes left over");
  return result;
}

}  // namespace kvlift::experiment
