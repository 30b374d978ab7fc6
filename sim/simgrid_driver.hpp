// Performs effects with SimGrid: device time, memory time and links in simulated time.
//
// No actor runs: activities are started from the kernel's context and answered by its completion signal, one
// activity an effect. An SSD and a host's memory are SimGrid hosts whose speed is bytes/s and whose work is bytes;
// they share fairly and an activity may have a bound of its own. SimGrid's own disks are not used: in 3.32 their
// activities are never forgotten when no actor waits for them, and their progress is rounded to whole bytes a step.
//
//   disk_read      latency x requests, then device time (bound: one stream), then what the page cache holds
//   disk_write     latency x requests, then device time
//   transfer       inside a host: its memory, and the link of the accelerator at one end, if one is;
//                  between hosts: NIC out and NIC in
//   call           latency, then at the master a queue for its RPC workers, then the service time
//   timer, compute a date
//
// Dates are kept in a heap of our own, with one kernel timer armed for the first: equal dates stay in order.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <simgrid/s4u.hpp>
#include <vector>

#include "core/driver.hpp"
#include "core/platform.hpp"
#include "sim/run.hpp"

namespace kvlift::sim {

class SimGridDriver {
 public:
  using Complete = std::function<void(const Completion&, Time)>;

  /// Builds the platform. `complete` is called for every effect that ends, inside run().
  SimGridDriver(const PlatformSettings& platform, Complete complete);
  ~SimGridDriver();
  SimGridDriver(const SimGridDriver&) = delete;
  SimGridDriver& operator=(const SimGridDriver&) = delete;

  void take(Effects& effects);
  /// Returns when nothing is under way any more.
  void run();
  /// Drops every date that is still to come, so that run() ends: the periodic work of a finished experiment.
  void stop() { dates_ = {}; }
  Time now() const;
  const Cost& cost() const { return cost_; }

 private:
  /// One effect on its way. Reads have two legs: device, then page cache. Transfers with an accelerator have two:
  /// the time of its slices, then the bytes.
  struct Flight {
    simgrid::s4u::ActivityPtr activity;
    Completion completion;
    std::uint32_t host = 0;
    double device = 0;                   ///< work at the device that waits for the latency to pass
    double bound = 0;                    ///< of that work
    Bytes cached;                        ///< what comes from the page cache after it
    simgrid::s4u::Host* from = nullptr;  ///< of a transfer whose slices are being prepared
    simgrid::s4u::Host* to = nullptr;
  };
  struct Date {
    double at = 0;
    std::uint64_t order = 0;
    std::int64_t at_ns = 0;    ///< not before this on core's clock
    std::uint32_t flight = 0;  ///< the flight that goes on then; kNone: `completion` is due
    Completion completion = {};
    bool operator>(const Date& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Machine {
    simgrid::s4u::Host* ssd = nullptr;
    simgrid::s4u::Host* memory = nullptr;
    simgrid::s4u::Host* nic = nullptr;
    HostSettings settings;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  void build(const PlatformSettings& platform);
  void schedule(double delay_s, const Date& date);
  void after(double delay_s, const Completion& completion) {
    schedule(delay_s, {.flight = kNone, .completion = completion});
  }
  void arm();
  void fire(double at);
  std::uint32_t new_flight(const Completion& completion);
  void work(std::uint32_t flight, simgrid::s4u::Host* where, double amount, double bound);
  void launch(std::uint32_t flight, const simgrid::s4u::ActivityPtr& activity);
  void end_leg(std::uint32_t flight);
  void request_disk(const Effect& effect);
  void continue_disk(std::uint32_t flight);
  void transfer(const Effect& effect);
  void send(std::uint32_t flight);
  /// Seconds until the callee has served the call.
  double call_time(const Effect& effect);

  PlatformSettings platform_;
  Complete complete_;
  simgrid::s4u::Engine engine_;
  std::vector<Machine> machines_;
  std::vector<std::uint32_t> machine_of_;   ///< by node
  std::vector<simgrid::s4u::Host*> nodes_;  ///< by node: its accelerator's link, as a route from it to itself
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  simgrid::s4u::ActivityPtr last_;  ///< an activity must outlive its own signal
  std::priority_queue<Date, std::vector<Date>, std::greater<>> dates_;
  std::uint64_t order_ = 0;
  double armed_ = -1;  ///< date of the kernel timer that counts; < 0: none
  std::priority_queue<double, std::vector<double>, std::greater<>> workers_free_at_;  ///< of the master
  Cost cost_;
};

}  // namespace kvlift::sim
