// Performs effects with SimGrid: disks, links and timers, in simulated time.
//
// No actor runs. Activities and timers are started from SimGrid's kernel context and answered by its completion
// signal; that is the cheapest way to use the library, and one activity stands for one effect.
//
//   node (a process) = a SimGrid host      host = memory link + two NIC links + one disk
//   transfer inside a host:     memory of the host, then the receiving node's own link
//   transfer between hosts:     NIC out, NIC in, then the receiving node's own link
//   SSD request:                latency x requests, then bytes at the device's share
//   call:                       latency, then (at the master) a queue for its RPC workers, then the service time
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <simgrid/s4u.hpp>
#include <unordered_map>
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
  Time now() const;
  const Cost& cost() const { return cost_; }

 private:
  struct Flight {
    simgrid::s4u::ActivityPtr activity;
    Completion completion;
  };
  void build(const PlatformSettings& platform);
  void after(double delay_s, const Completion& completion);
  void at(Time date, const Completion& completion);
  void start(const simgrid::s4u::ActivityPtr& activity, const Completion& completion);
  void request_disk(const Effect& effect, bool reads);
  void transfer(const Effect& effect);
  /// Seconds until the callee has served the call.
  double call_time(const Effect& effect);

  PlatformSettings platform_;
  Complete complete_;
  simgrid::s4u::Engine engine_;
  std::vector<simgrid::s4u::Host*> nodes_;                                            ///< by node
  std::vector<std::size_t> host_of_;                                                  ///< by node
  std::vector<HostSettings> hosts_;                                                   ///< by host
  std::vector<simgrid::s4u::Disk*> disks_;                                            ///< by host
  std::unordered_map<const simgrid::s4u::Activity*, Flight> flights_;                 // never iterated
  std::priority_queue<double, std::vector<double>, std::greater<>> workers_free_at_;  ///< of the master
  Cost cost_;
};

}  // namespace kvlift::sim
