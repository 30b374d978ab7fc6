// One object's way from SSD to DRAM: the chain that prefetch and promotion-on-hit share (RFC #4271, component 3).
//
//              OK                OK             OK             OK            OK              OK
//  registering --> allocating --> staging --> reading --> writing --> committing --> done(completed)
//       |  |            |            |           |           |             |
//       |  | no answer  +------------+-----+-----+-----------+-------------+   any error
//       |  +------------------------------> abandoning --> done(failed)
//       +-- PROMOTION_ALREADY_EXISTS --> done(skipped);  any other refusal --> done(failed)
//
// The guard of the RFC is the shape of this table: every way out after the allocation was asked for, except a
// commit, leads through `abandoning`, once. An unanswered registration goes there too, since the master may
// hold a task for it; NotifyPromotionFailure of an unknown task is harmless.
//
// A value: events in, commands out, no memory, no time of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace kvlift {

class Promotion {
 public:
  enum class State : std::uint8_t {
    registering,
    allocating,
    staging,
    reading,
    writing,
    committing,
    abandoning,
    done,
  };
  enum class Outcome : std::uint8_t { open, completed, failed, skipped };
  enum class Command : std::uint8_t {
    register_task,    ///< RegisterPrefetchTask at the master
    allocate,         ///< PromotionAllocStart at the master
    stage,            ///< reserve size() bytes of the holder's staging arena
    read_ssd,         ///< read the object into staging
    write_dram,       ///< write it from staging into the allocated replica
    notify_success,   ///< NotifyPromotionSuccess at the master
    notify_failure,   ///< NotifyPromotionFailure at the master
    release_staging,  ///< give the reservation back; nothing is answered
    finish,           ///< outcome() is final; nothing is answered
  };
  /// At most two commands follow one event.
  class Commands {
   public:
    void append(Command c) { commands_[count_++] = c; }
    std::span<const Command> view() const { return {commands_.data(), count_}; }

   private:
    std::array<Command, 2> commands_{};
    std::size_t count_ = 0;
  };

  /// A prefetch registers its task first; promotion-on-hit has one already and starts at the allocation.
  enum class Origin : std::uint8_t { prefetch, on_hit };

  Promotion() = default;
  Promotion(Origin origin, const ObjectKey& key, Bytes size) : key_(key), size_(size), origin_(origin) {}

  void start(Commands& out);
  /// The answer to the last command that has one. `moved` counts for read_ssd and write_dram: fewer bytes than
  /// size() are an error whatever `error` says (F1, F4).
  void on(Error error, Bytes moved, Commands& out);

  State state() const { return state_; }
  Outcome outcome() const { return outcome_; }
  /// Why it failed; OK while open and when completed.
  Error error() const { return error_; }
  /// True when the allocation found no room: the caller opens its cooldown.
  bool dram_pressure() const { return dram_pressure_; }
  const ObjectKey& key() const { return key_; }
  Bytes size() const { return size_; }

 private:
  void advance(State next, Command command, Commands& out);
  void end(Outcome outcome, Commands& out);
  void abandon(Error why, Commands& out);

  ObjectKey key_;
  Bytes size_;
  Origin origin_ = Origin::prefetch;
  State state_ = State::registering;
  Outcome outcome_ = Outcome::open;
  Error error_ = Error::OK;
  bool dram_pressure_ = false;
};

}  // namespace kvlift
