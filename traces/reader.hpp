// Requests of a Mooncake trace file, plain or gzip, one at a time in constant memory.
//
// The file is held to its format (README.md): the first line that breaks it ends the reading with one TraceError that
// says file, line, field, and what was expected. Stamps never go back. What only a whole trace can show (an id with two
// parents) is counted by describe().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "traces/line_parser.hpp"
#include "traces/line_reader.hpp"
#include "traces/request.hpp"

namespace kvlift {

class TraceReader {
 public:
  static constexpr std::size_t kLineBytesMax = 64 << 20;

  /// A trace does not say how many tokens an id stands for, so the caller must: 512 in the published ones.
  TraceReader(const std::string& path, Tokens block_tokens, std::size_t line_bytes_max = kLineBytesMax);
  /// Of `bytes`, which errors call `name`.
  TraceReader(std::unique_ptr<ByteSource> bytes, const std::string& name, Tokens block_tokens,
              std::size_t line_bytes_max = kLineBytesMax);

  /// False at the end of a whole trace. After an error the reader is of no more use.
  bool next(TraceRequest& request);

  /// Of the request last given, from 1.
  std::int64_t line() const { return lines_.number(); }
  Tokens block_tokens() const { return block_tokens_; }

 private:
  [[noreturn]] void fail(const std::string& what) const;

  LineReader lines_;
  LineParser parser_;
  Tokens block_tokens_;
  Time last_arrival_;
};

}  // namespace kvlift
