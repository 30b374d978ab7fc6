// The step driver: an event heap and seeded faults, no model of any resource. It proves that the driver contract
// is enough, and it is fast enough for millions of runs.
//
// Every effect completes after its nominal time (latency + bytes / bandwidth of the plan's platform), whatever
// else is under way. Faults are drawn from the seed when an effect is taken; each kind has an identity and a count.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/driver.hpp"
#include "core/platform.hpp"
#include "core/random.hpp"
#include "core/run.hpp"

namespace kvlift::step {

enum class Fault : std::uint8_t {
  request_lost,     ///< the call never reached the callee; the caller times out
  reply_lost,       ///< the callee's handler ran; the caller times out
  duplicate,        ///< the request is delivered twice
  delay,            ///< anything takes up to 100 times longer
  stall,            ///< anything takes 1 to 20 s longer: beyond leases and staging
  reorder,          ///< an effect completes at a time drawn anew, so later ones overtake it
  short_read,       ///< the SSD delivers fewer bytes, also none
  read_error,       ///< FILE_READ_FAIL
  write_error,      ///< FILE_WRITE_FAIL, also short
  transfer_error,   ///< TRANSFER_FAIL, also short
  completed_twice,  ///< the same completion is handed in again
};
inline constexpr std::size_t kFaultKinds = 11;
std::string_view to_string(Fault fault);

/// Chance of each fault per effect it can hit, in 1 of 1,000,000.
struct FaultRates {
  std::array<std::uint32_t, kFaultKinds> per_million{};
  static FaultRates none() { return {}; }
  static FaultRates all(std::uint32_t per_million_each);
};

class StepDriver {
 public:
  StepDriver(const PlatformSettings& platform, std::uint64_t seed, const FaultRates& rates);

  /// Takes every effect in the list and clears it.
  void take(Effects& effects);
  /// The next completion and its time; false when nothing is under way.
  bool next(Completion& completion);
  /// Adds an event of the test's own; it comes back as a completion with this id.
  void schedule(EffectId id, Time at) { push(at, {.id = id}); }
  void set_rates(const FaultRates& rates) { rates_ = rates; }

  Time now() const { return now_; }
  const std::array<std::uint64_t, kFaultKinds>& faults() const { return faults_; }

 private:
  struct Event {
    Time at;
    std::uint64_t order = 0;
    Completion completion;
  };
  bool draw(Fault fault);
  Duration nominal(const Effect& effect) const;
  void push(Time at, const Completion& completion);

  PlatformSettings platform_;
  std::vector<std::uint32_t> host_of_;  ///< by node
  std::vector<HostSettings> hosts_;     ///< by host
  Random random_;
  FaultRates rates_;
  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
  Time now_;
  std::array<std::uint64_t, kFaultKinds> faults_{};
};

}  // namespace kvlift::step
