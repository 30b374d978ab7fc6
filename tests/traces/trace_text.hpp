// Traces in memory for tests: what they hold, or what is said about them. Blocks have 100 tokens.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "traces/error.hpp"
#include "traces/reader.hpp"

namespace kvlift {

inline constexpr Tokens kBlock{100};

/// A sound line without its end; two blocks.
inline std::string line_at(std::int64_t timestamp_ms) {
  return "{\"timestamp\": " + std::to_string(timestamp_ms) +
         ", \"input_length\": 150, \"output_length\": 7, \"hash_ids\": [0, 1]}";
}

inline std::vector<TraceRequest> read_all(std::string bytes, Tokens block = kBlock,
                                          std::size_t line_bytes_max = TraceReader::kLineBytesMax) {
  TraceReader reader(bytes_in_memory(std::move(bytes), "t"), "t", block, line_bytes_max);
  std::vector<TraceRequest> requests;
  for (TraceRequest request; reader.next(request);) requests.push_back(request);
  return requests;
}

/// What is said of a file "t" with these bytes; empty when it is sound.
inline std::string error_of(std::string bytes, Tokens block = kBlock,
                            std::size_t line_bytes_max = TraceReader::kLineBytesMax) {
  try {
    read_all(std::move(bytes), block, line_bytes_max);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

/// A source that gives these one after the other.
inline TraceSource source_of(std::vector<TraceRequest> requests) {
  return [requests = std::move(requests), next = std::size_t{0}](TraceRequest& request) mutable {
    if (next == requests.size()) return false;
    request = requests[next++];
    return true;
  };
}

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvlift-traces-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::filesystem::path path_;
};

/// The published conversation trace, which is not part of the project; empty where it is absent.
inline std::string conversation_trace() {
  const char* shared = std::getenv("KVLIFT_SHARED");
  const std::filesystem::path folder =
      shared != nullptr ? std::filesystem::path(shared) : std::filesystem::path(KVLIFT_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path file = folder / "traces" / "conversation_trace.jsonl";
  return std::filesystem::exists(file) ? file.string() : "";
}

}  // namespace kvlift
