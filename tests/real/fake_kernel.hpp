// A kernel whose results are drawn or told: short, empty, failed, late, in any order. It stands for files of one
// known content, so that a test can tell which bytes must have arrived.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "core/random.hpp"
#include "real/descriptor.hpp"
#include "real/kernel.hpp"

namespace kvlift::real {

/// What every fake file has at an offset; the period is no multiple of a page, so that a shift shows.
class FakeContent {
 public:
  static constexpr std::uint64_t kPeriod = 65'521;
  FakeContent() : bytes_(2 * kPeriod) {
    Random random(1);
    for (std::uint64_t i = 0; i < kPeriod; ++i) bytes_[i] = bytes_[i + kPeriod] = static_cast<std::byte>(random.next());
  }
  /// At least one period long.
  const std::byte* at(std::uint64_t offset) const { return bytes_.data() + offset % kPeriod; }

 private:
  std::vector<std::byte> bytes_;
};

struct FakeKernelState {
  /// Called when an operation is reaped: bytes done or -errno; what it says is what happens.
  std::function<int(const KernelRequest&)> answer = [](const KernelRequest& ask) {
    return static_cast<int>(ask.bytes);
  };
  /// Called with the operations under way: which of them ends next; `size()`: none for now.
  std::function<std::size_t(const std::vector<KernelRequest>&)> pick = [](const auto&) { return std::size_t{0}; };
  std::vector<KernelRequest> under_way;
  std::vector<KernelRequest> pushed;
  std::size_t push_max = 1024;
  std::uint64_t range_max = 0;
  int register_result = 0;
  int submit_result = 0;
  std::uint64_t submits = 0, cancels = 0, most_under_way = 0;
  std::vector<Memory> ranges;
};

/// Does nothing for a read but copying the content, and for a write nothing. The state outlives it.
class FakeKernel final : public Kernel {
 public:
  FakeKernel(FakeKernelState& state, const FakeContent& content)
      : state_(state), content_(content), ready_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    state_.under_way.reserve(4096);
    state_.pushed.reserve(4096);
    set_event(ready_.get());
  }
  bool push(const KernelRequest& request) override {
    if (state_.pushed.size() == state_.push_max) return false;
    state_.pushed.push_back(request);
    return true;
  }
  int submit() override {
    if (state_.pushed.empty()) return 0;
    ++state_.submits;
    if (state_.submit_result != 0) return state_.submit_result;
    state_.under_way.insert(state_.under_way.end(), state_.pushed.begin(), state_.pushed.end());
    state_.pushed.clear();
    state_.most_under_way = std::max<std::uint64_t>(state_.most_under_way, state_.under_way.size());
    return 0;
  }
  std::size_t reap(std::span<KernelResult> results) override {
    std::size_t n = 0;
    while (n < results.size() && !state_.under_way.empty()) {
      const std::size_t i = state_.pick(state_.under_way);
      if (i >= state_.under_way.size()) break;
      const KernelRequest ask = state_.under_way[i];
      state_.under_way.erase(state_.under_way.begin() + static_cast<std::ptrdiff_t>(i));
      results[n++] = {ask.user, end(ask)};
    }
    return n;
  }
  int add_file(int) override { return files_++; }
  void remove_file(int) override {}
  int register_memory(std::span<const Memory> ranges) override {
    state_.ranges.assign(ranges.begin(), ranges.end());
    return state_.register_result;
  }
  std::uint64_t range_bytes_max() const override { return state_.range_max; }
  int ready_fd() const override { return ready_.get(); }
  void quiet() override {}
  std::uint64_t submit_calls() const override { return state_.submits; }
  std::string describe() const override { return "fake"; }

 private:
  int end(const KernelRequest& ask) {
    if (ask.kind == KernelRequest::Kind::cancel) {
      ++state_.cancels;
      return 0;
    }
    const int result = state_.answer(ask);
    if (result > 0 && ask.kind == KernelRequest::Kind::read)
      std::memcpy(ask.data, content_.at(ask.offset), static_cast<std::size_t>(result));
    return result;
  }

  FakeKernelState& state_;
  const FakeContent& content_;
  Descriptor ready_;
  int files_ = 0;
};

}  // namespace kvlift::real
