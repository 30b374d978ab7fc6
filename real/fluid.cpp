#include "real/fluid.hpp"

#include <algorithm>
#include <cmath>

namespace kvlift::real {

void FluidResource::progress(Time now) {
  const double passed = to_seconds(now - at_);
  for (Flow& flow : flows_) flow.left -= flow.rate * passed;
  at_ = now;
}

/// Rates and the first end from what is under way: the smallest bounds are served first, the rest is shared.
void FluidResource::share() {
  by_bound_.clear();
  for (Flow& flow : flows_) by_bound_.push_back(&flow);
  const auto bound_of = [this](const Flow* flow) { return flow->bound > 0 ? flow->bound : capacity_; };
  std::stable_sort(by_bound_.begin(), by_bound_.end(),
                   [&](const Flow* a, const Flow* b) { return bound_of(a) < bound_of(b); });
  double free = capacity_;
  double first = -1;
  for (std::size_t i = 0; i < by_bound_.size(); ++i) {
    Flow& flow = *by_bound_[i];
    flow.rate = std::min(bound_of(&flow), free / static_cast<double>(by_bound_.size() - i));
    free -= flow.rate;
    const double ends = std::max(0.0, flow.left) / flow.rate;
    if (first < 0 || ends < first) first = ends;
  }
  // Rounded up, so that at that time the work is done.
  next_ = flows_.empty() ? kNever : at_ + Duration{static_cast<std::int64_t>(std::ceil(first * 1e9))};
}

void FluidResource::add(std::uint64_t user, double amount, double bound, Time now) {
  progress(now);
  flows_.push_back({.user = user, .left = amount, .bound = bound});
  share();
}

void FluidResource::advance(Time now, std::vector<std::uint64_t>& ended) {
  while (next_ <= now) {
    progress(next_);
    const auto is_done = [](const Flow& flow) { return flow.left <= flow.rate * 1e-9; };  // less than a nanosecond's
    for (const Flow& flow : flows_) {
      if (is_done(flow)) ended.push_back(flow.user);
    }
    std::erase_if(flows_, is_done);
    share();
  }
}

}  // namespace kvlift::real
