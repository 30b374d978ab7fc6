// Things that are due at a time: the earliest first, of one time the first that came.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "core/time.hpp"

namespace kvlift::real {

template <class Thing>
class DueQueue {
 public:
  void push(Time at, Thing thing) { queue_.push({at, order_++, thing}); }
  /// kNever when there is none.
  Time next() const { return queue_.empty() ? kNever : queue_.top().at; }
  /// True when one is due by `now`; it is taken out.
  bool take(Time now, Thing& thing) {
    if (queue_.empty() || queue_.top().at > now) return false;
    thing = queue_.top().thing;
    queue_.pop();
    return true;
  }
  void clear() { queue_ = {}; }

 private:
  struct Entry {
    Time at;
    std::uint64_t order = 0;
    Thing thing = {};
    bool operator>(const Entry& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::uint64_t order_ = 0;
};

}  // namespace kvlift::real
