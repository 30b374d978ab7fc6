#include "traces/info.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/assert.hpp"
#include "traces/reader.hpp"
#include "traces/stack_distance.hpp"

namespace kvlift {
namespace {

constexpr std::uint32_t kNoBlock = std::numeric_limits<std::uint32_t>::max();

struct Block {
  std::int64_t uses = 0;
  Time last_use;
  std::uint32_t parent = kNoBlock;  ///< at its first use
};

class Description {
 public:
  Description(Tokens block_tokens, const std::vector<std::int64_t>& capacities) {
    info_.block_tokens = block_tokens;
    for (const std::int64_t capacity : capacities) {
      KVLIFT_ASSERT(capacity >= 1);
      info_.lru.push_back({capacity, 0});
    }
  }

  void add(const TraceRequest& request) {
    add_arrival(request.arrival);
    input_.push_back(request.input_length.value);
    output_.push_back(request.output_length.value);
    blocks_per_request_.push_back(static_cast<std::int64_t>(request.hash_ids.size()));
    info_.blocks_total += blocks_per_request_.back();
    info_.partial_blocks += request.input_length.value % info_.block_tokens.value != 0 ? 1 : 0;
    std::uint32_t parent = kNoBlock;
    for (const std::uint64_t id : request.hash_ids) parent = add_block(id, parent, request.arrival);
  }

  TraceInfo finish() {
    info_.input_tokens = figures_of(input_);
    info_.output_tokens = figures_of(output_);
    info_.blocks = figures_of(blocks_per_request_);
    info_.reuse_gap_ms = figures_of(gaps_ms_);
    info_.distinct_ids = static_cast<std::int64_t>(blocks_.size());
    info_.used_once = std::count_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.uses == 1; });
    return std::move(info_);
  }

 private:
  void add_arrival(Time arrival) {
    if (info_.requests++ == 0) info_.first_arrival = arrival;
    if (info_.distinct_stamps == 0 || arrival != info_.last_arrival) {
      ++info_.distinct_stamps;
      on_stamp_ = 0;
    }
    info_.last_arrival = arrival;
    info_.largest_tick = std::max(info_.largest_tick, ++on_stamp_);
  }

  /// The block's own number, by first use.
  std::uint32_t add_block(std::uint64_t id, std::uint32_t parent, Time now) {
    KVLIFT_ASSERT(blocks_.size() < kNoBlock);
    const auto [place, is_new] = numbers_.try_emplace(id, static_cast<std::uint32_t>(blocks_.size()));
    const std::uint32_t number = place->second;
    if (is_new) blocks_.push_back({.uses = 0, .last_use = now, .parent = parent});
    Block& block = blocks_[number];
    const std::int64_t distance = distances_.use(number);
    if (block.uses++ > 0) {
      ++info_.hits;
      gaps_ms_.push_back((now - block.last_use).ns / milliseconds(1).ns);
      for (LruPoint& point : info_.lru) point.hits += distance < point.capacity_blocks ? 1 : 0;
      info_.misplaced_ids += block.parent != parent ? 1 : 0;
    }
    block.last_use = now;
    return number;
  }

  TraceInfo info_;
  std::int64_t on_stamp_ = 0;
  std::vector<std::int64_t> input_, output_, blocks_per_request_, gaps_ms_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<Block> blocks_;
  StackDistances distances_;
};

}  // namespace

double TraceInfo::share_of_blocks(std::int64_t count) const {
  return blocks_total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(blocks_total);
}

Figures figures_of(std::vector<std::int64_t>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto n = static_cast<std::int64_t>(values.size());
  const auto at = [&](std::int64_t percent) { return values[static_cast<std::size_t>((n * percent + 99) / 100 - 1)]; };
  long double sum = 0;  // lengths may be near 2^63
  for (const std::int64_t value : values) sum += static_cast<long double>(value);
  return {
      n, static_cast<double>(sum / static_cast<long double>(n)), values.front(), at(50), at(90), at(99), values.back()};
}

TraceInfo describe(const TraceSource& source, Tokens block_tokens, const std::vector<std::int64_t>& capacities) {
  KVLIFT_ASSERT(block_tokens.value >= 1);
  Description description(block_tokens, capacities);
  TraceRequest request;
  while (source(request)) description.add(request);
  return description.finish();
}

TraceInfo describe(TraceReader& reader) {
  return describe([&](TraceRequest& request) { return reader.next(request); }, reader.block_tokens());
}

}  // namespace kvlift
