#include "traces/line_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "traces/error.hpp"

namespace kvlift {

LineReader::LineReader(std::unique_ptr<ByteSource> bytes, std::string name, std::size_t line_bytes_max)
    : bytes_(std::move(bytes)), name_(std::move(name)), line_bytes_max_(line_bytes_max), buffer_(256 << 10) {}

bool LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

bool LineReader::next(std::string_view& line) {
  std::size_t looked_at = 0;  // no line end in these first bytes
  for (;;) {
    const char* first = buffer_.data() + begin_;
    const std::size_t held = end_ - begin_;
    const auto* end = static_cast<const char*>(std::memchr(first + looked_at, '\n', held - looked_at));
    const std::size_t length = end != nullptr ? static_cast<std::size_t>(end - first) : held;
    if (length > line_bytes_max_) {
      ++number_;
      throw TraceError(place() + ": the line is longer than " + std::to_string(line_bytes_max_) + " bytes");
    }
    if (end != nullptr || at_end_) {
      if (end == nullptr && held == 0) return false;
      ++number_;
      begin_ += length + (end != nullptr ? 1 : 0);
      line = {first, length};
      if (end != nullptr && line.ends_with('\r')) line.remove_suffix(1);
      return true;
    }
    looked_at = held;
    if (!at_end_) fill();
  }
}

}  // namespace kvlift
