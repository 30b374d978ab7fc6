#include "traces/line_scan.hpp"

#include <cstddef>
#include <cstdint>

namespace kvlift {
namespace {

constexpr int kDigitsMax = 18;  // 10^18 < 2^63: no overflow to look for

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool text(std::string_view expected) {
    if (static_cast<std::size_t>(end_ - at_) < expected.size()) return false;
    if (std::string_view(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  /// `c`, then a blank or none.
  bool mark(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    if (at_ != end_ && *at_ == ' ') ++at_;
    return true;
  }
  bool integer(std::int64_t& value) {
    const char* first = at_;
    std::int64_t sum = 0;
    for (; at_ != end_; ++at_) {
      const int digit = *at_ - '0';
      if (digit < 0 || digit > 9) break;
      if (at_ - first == kDigitsMax) return false;
      sum = sum * 10 + digit;
    }
    value = sum;
    return at_ != first && (*first != '0' || at_ - first == 1);
  }
  bool field(std::string_view name, std::int64_t& value) { return text(name) && mark(':') && integer(value); }
  bool ids(std::vector<std::uint64_t>& list) {
    if (!mark('[')) return false;
    do {
      std::int64_t id = 0;
      if (!integer(id)) return false;
      list.push_back(static_cast<std::uint64_t>(id));
    } while (mark(','));
    return text("]");
  }
  bool at_end() const { return at_ == end_; }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

bool scan_line(std::string_view line, Tokens block_tokens, TraceRequest& request) {
  Scanner scan(line);
  std::int64_t timestamp_ms = 0;
  request.hash_ids.clear();
  const bool known = scan.text("{") && scan.field("\"timestamp\"", timestamp_ms) && scan.mark(',') &&
                     scan.field("\"input_length\"", request.input_length.value) && scan.mark(',') &&
                     scan.field("\"output_length\"", request.output_length.value) && scan.mark(',') &&
                     scan.text("\"hash_ids\"") && scan.mark(':') && scan.ids(request.hash_ids) && scan.text("}") &&
                     scan.at_end();
  if (!known || timestamp_ms > kTimestampMaxMs || request.input_length.value < 1) return false;
  request.arrival = Time{} + milliseconds(timestamp_ms);
  return blocks_of(request.input_length, block_tokens) == static_cast<std::int64_t>(request.hash_ids.size());
}

}  // namespace kvlift
