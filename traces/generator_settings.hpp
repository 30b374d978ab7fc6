// What a made-up trace is to be like. Defaults are shaped after the published conversation trace; README.md says which
// of its figures they meet and which they do not.
#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace kvlift {

/// Lognormal in tokens: `mean` of the distribution itself, `sigma` of its logarithm, results held in [min, max].
struct LengthSettings {
  double mean = 1;
  double sigma = 0;
  Tokens min = {1};
  Tokens max = {1};
};

struct GeneratorSettings {
  enum class Arrivals : std::uint8_t {
    poisson,  ///< independent of each other
    fixed,    ///< every 1 / rate_per_s seconds
    bursty,   ///< Poisson while on, nothing while off; the mean over both is rate_per_s
  };

  std::uint64_t seed = 1;
  std::int64_t requests = 12'031;  ///< as in the conversation trace
  double scale = 1;                ///< times `requests`, at the same rate: a smaller trace is the start of a larger one
  Tokens block_tokens = {512};     ///< of the published traces

  Arrivals arrivals = Arrivals::poisson;
  double rate_per_s = 3.4;                   ///< 12,031 requests in 3,537 s
  double burst_on_s = 10, burst_off_s = 20;  ///< bursty: mean lengths, exponential

  std::int64_t shared_blocks = 1;  ///< system prompt: the first blocks of every prompt
  std::int64_t conversations_max =
      4096;                  ///< that wait for their next turn; beyond, the one that waits longest is given up
  double turns_mean = 1.68;  ///< geometric: each turn is the last one with probability 1 / turns_mean
  double new_conversation_probability = 0.25;     ///< an arrival opens a conversation although one is due
  double think_mean_s = 330, think_sigma = 1.25;  ///< from a turn's arrival until its conversation is due; lognormal

  LengthSettings first_prompt = {.mean = 11'500, .sigma = 1.15, .min = {891}, .max = {126'195}};
  LengthSettings user_turn = {.mean = 1'500, .sigma = 2, .min = {1}, .max = {32'768}};  ///< new tokens of later turns
  LengthSettings output = {.mean = 343, .sigma = 0.6, .min = {1}, .max = {2'000}};
  Tokens prompt_max = {126'195};  ///< a conversation that would grow beyond ends

  /// requests x scale, rounded.
  std::int64_t requests_total() const;
  /// Throws TraceError "FIELD: what is expected, what is there" at the first that is out of range.
  void check() const;
};

}  // namespace kvlift
