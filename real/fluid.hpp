// One resource that its users share fairly: each gets an equal part, no more than its own bound, and what a bounded
// one leaves goes to the others (max-min fairness).
//
// Only for standing in for a device this machine does not have; see stand_in.hpp. Time is given, never read.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.hpp"

namespace kvlift::real {

class FluidResource {
 public:
  /// `capacity` in units of work per second, > 0.
  explicit FluidResource(double capacity) : capacity_(capacity) {}

  /// Starts `amount` > 0 of work for `user`; `bound` in units per second, 0 is none. `now` never goes back.
  void add(std::uint64_t user, double amount, double bound, Time now);
  /// When the first of the users will have ended if nothing is added; kNever when there is none.
  Time next() const { return next_; }
  /// Appends the users that have ended by `now`, in the order they were added.
  void advance(Time now, std::vector<std::uint64_t>& ended);

 private:
  struct Flow {
    std::uint64_t user = 0;
    double left = 0, bound = 0, rate = 0;
  };
  void progress(Time now);
  void share();

  double capacity_;
  Time at_;  ///< `left` and `rate` are as of then
  Time next_ = kNever;
  std::vector<Flow> flows_;      ///< by order of adding
  std::vector<Flow*> by_bound_;  ///< scratch
};

}  // namespace kvlift::real
