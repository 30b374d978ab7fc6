// Lines of a byte source, numbered, no longer than a bound; memory is one line and one chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/bytes.hpp"

namespace kvlift {

class LineReader {
 public:
  LineReader(std::unique_ptr<ByteSource> bytes, std::string name, std::size_t line_bytes_max);

  /// The next line without its end (LF or CRLF), valid until the next call; false at the end. A last line that has no
  /// end counts. Throws TraceError.
  bool next(std::string_view& line);

  /// Of the line last given, from 1.
  std::int64_t number() const { return number_; }
  /// "NAME:NUMBER" of that line.
  std::string place() const { return name_ + ":" + std::to_string(number_); }
  const std::string& name() const { return name_; }

 private:
  bool fill();

  std::unique_ptr<ByteSource> bytes_;
  std::string name_;
  std::size_t line_bytes_max_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< bytes of the buffer not given yet
  bool at_end_ = false;
  std::int64_t number_ = 0;
};

}  // namespace kvlift
