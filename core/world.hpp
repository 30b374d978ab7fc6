// A whole experiment as one value: a store, its engines and the workload's phases, behind the driver contract.
//
// A driver loops: take effects(), perform them, hand each completion to on(), until done(). What it does with
// time is its own affair; every decision is in here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/driver.hpp"
#include "core/run.hpp"

namespace kvlift {

class Cluster;

class World {
 public:
  explicit World(const RunPlan& plan);
  ~World();
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;

  void start(Time now);
  void on(const Completion& completion, Time now);
  /// Effects to perform, in order; the driver clears the list.
  Effects& effects();
  /// Their places, when the plan asks for them; cleared with the effects.
  Places& places();
  /// Every phase has ended. Periodic effects may still be under way; they are dropped.
  bool done() const;
  /// What was measured; complete once done() is true.
  const RunResult& result() const;
  /// Requests finished so far, for progress.
  std::int64_t requests_finished() const;
  const Cluster& cluster() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvlift
