// Stands in for a platform this machine is not: says when an effect would have ended there.
//
// The executor performs every effect and hands its completion in when both are over, the real work and this. So a
// real run is never faster than the platform asked for, and slower where this machine is.
//
// The model is that of sim/simgrid_driver.hpp: device time shared fairly with a bound a stream, memory and links
// shared fairly, calls with latency, the master's workers and service time. tests/conformance compares the two.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "core/driver.hpp"
#include "core/platform.hpp"
#include "real/due_queue.hpp"
#include "real/fluid.hpp"

namespace kvlift::real {

class StandIn {
 public:
  /// What is stood in for; the rest takes no time here.
  struct Parts {
    bool ssd = false;
    bool memory_and_links = false;
    bool calls = false;
  };

  StandIn(const PlatformSettings& platform, const Parts& parts);

  /// False when it takes no time there: nothing will be reported. Timers and computing are not asked about.
  bool begin(const Effect& effect, Time now);
  /// When something may end; kNever when nothing is under way.
  Time next() const;
  /// Appends the effects that have ended there by `now`.
  void advance(Time now, std::vector<EffectId>& ended);

 private:
  /// What an effect still has to go through; each stage is one delay, or work on up to two resources at once.
  struct Stage {
    Duration delay = {};
    std::int32_t resource[2] = {-1, -1};
    double amount = 0;
    double bound = 0;
  };
  struct Flight {
    std::vector<Stage> stages;
    std::size_t stage = 0;
    int open = 0;  ///< parts of the stage under way
  };
  struct Machine {
    HostSettings settings;
    std::int32_t ssd = 0, memory = 0, nic_out = 0, nic_in = 0;
  };

  std::int32_t add_resource(double capacity);
  void disk(const Effect& effect, std::vector<Stage>& stages) const;
  void transfer(const Effect& effect, std::vector<Stage>& stages) const;
  Duration call_time(const Effect& effect, Time now);
  void start_stage(std::uint64_t user, Time now);
  void part_ended(std::uint64_t user, Time at, std::vector<EffectId>& ended);

  PlatformSettings platform_;
  Parts parts_;
  std::vector<FluidResource> resources_;
  std::vector<Machine> machines_;
  std::vector<std::uint32_t> machine_of_;  ///< by node
  std::vector<std::int32_t> own_link_;     ///< by node: of its accelerator
  std::unordered_map<std::uint64_t, Flight> flights_;
  DueQueue<std::uint64_t> delays_;
  std::priority_queue<Time, std::vector<Time>, std::greater<>> workers_free_at_;  ///< of the master
  std::vector<std::uint64_t> scratch_;
};

}  // namespace kvlift::real
