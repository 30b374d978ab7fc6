// A made-up trace: conversations that share a system prompt, each turn the whole conversation so far and some more.
//
//   arrival --- a conversation is due, and no coin says "new" --> next turn: prompt + output + new user tokens
//          \--- otherwise -------------------------------------> new conversation: shared blocks + its own
//   after a turn: the last one, or due again after a think time
//
// Block ids are numbered in order of first appearance and form a tree; a turn shares the full blocks of its
// conversation's last prompt, and its partial last block is a new id, as in the published traces. Arrivals are whole
// milliseconds. One seed gives one trace (sampling.hpp); memory grows with the conversations that wait, not with the
// trace.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "core/time.hpp"
#include "traces/generator_settings.hpp"
#include "traces/request.hpp"
#include "traces/sampling.hpp"

namespace kvlift {

/// Points in time, each not before the last.
class ArrivalProcess {
 public:
  ArrivalProcess(const GeneratorSettings& settings, Random random);
  Time next();

 private:
  GeneratorSettings::Arrivals kind_;
  Duration gap_;       ///< mean; of a burst's own arrivals when bursty
  Duration on_, off_;  ///< means
  Duration on_left_;
  Random random_;
  Time now_;
};

class Generator {
 public:
  /// Throws TraceError for settings that are out of range.
  explicit Generator(const GeneratorSettings& settings);

  /// False after the last request.
  bool next(TraceRequest& request);

 private:
  struct Conversation {
    std::vector<std::uint64_t> ids;
    Tokens input, output;  ///< of its last turn
  };

  bool take_due(Time now, Conversation& conversation);
  void begin(Conversation& conversation);
  bool go_on(Conversation& conversation);
  void extend_to(Tokens input, Conversation& conversation);
  void wait_for_next_turn(Time now, Conversation conversation);

  GeneratorSettings settings_;
  Random random_;
  ArrivalProcess arrivals_;
  Lognormal first_prompt_, user_turn_, output_, think_ms_;
  std::int64_t left_;
  std::uint64_t next_id_ = 0;
  /// By the time they are due, then by age.
  std::map<std::pair<Time, std::int64_t>, Conversation> waiting_;
};

}  // namespace kvlift
