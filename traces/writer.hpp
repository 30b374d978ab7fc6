// Requests to a Mooncake trace file, plain or gzip, that appears whole or not at all.
//
// The text is the published traces', byte for byte: what was read from one and is written again is the same file. A
// file counts in milliseconds, so arrivals are rounded to the nearest; order survives. Equal requests give equal bytes,
// packed too (the gzip header has neither name nor time).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "traces/request.hpp"

namespace kvlift {

enum class Packing : std::uint8_t { plain, gzip };

/// The request's line with its line end, behind `text`. Arrival and lengths are not negative.
void append_line(const TraceRequest& request, std::string& text);

class TraceWriter {
 public:
  /// Opens a temporary file beside `path` at once, so that a place that cannot be written is found before the work.
  /// Refuses to replace what is not a regular file. Throws TraceError.
  TraceWriter(const std::string& path, Packing packing);
  ~TraceWriter();  ///< without commit(): nothing is left
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void write(const TraceRequest& request);
  /// Gives the file its name. Throws TraceError when the bytes did not reach it.
  void commit();

 private:
  struct File;
  void flush();
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  std::filesystem::path path_, temporary_;
  std::unique_ptr<File> file_;
  std::string text_;
};

}  // namespace kvlift
