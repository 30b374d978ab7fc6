#include "traces/generator.hpp"

#include <cmath>
#include <string>

#include "traces/error.hpp"

namespace kvlift {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << kQ32;

bool happens(double probability, Random& random) {
  return random.chance(static_cast<std::uint64_t>(to_q32(probability)), kOne);
}

Lognormal lognormal(const LengthSettings& length) {
  return {length.mean, length.sigma, length.min.value, length.max.value};
}

const GeneratorSettings& checked(const GeneratorSettings& settings) {
  settings.check();
  return settings;
}

constexpr std::int64_t kThinkMaxMs = 1'000'000'000'000;  // 31 years: never, for a trace

}  // namespace

ArrivalProcess::ArrivalProcess(const GeneratorSettings& settings, Random random)
    : kind_(settings.arrivals), gap_(from_seconds(1 / settings.rate_per_s)), random_(random) {
  if (kind_ != GeneratorSettings::Arrivals::bursty) return;
  on_ = from_seconds(settings.burst_on_s);
  off_ = from_seconds(settings.burst_off_s);
  gap_ = from_seconds(settings.burst_on_s / (settings.burst_on_s + settings.burst_off_s) / settings.rate_per_s);
  on_left_ = exponential(random_, on_);
}

Time ArrivalProcess::next() {
  const Time at = now_;
  switch (kind_) {
    case GeneratorSettings::Arrivals::fixed:
      now_ = now_ + gap_;
      break;
    case GeneratorSettings::Arrivals::poisson:
      now_ = now_ + exponential(random_, gap_);
      break;
    case GeneratorSettings::Arrivals::bursty: {
      Duration step = exponential(random_, gap_);
      while (step > on_left_) {
        now_ = now_ + on_left_ + exponential(random_, off_);
        step = step - on_left_;
        on_left_ = exponential(random_, on_);
      }
      on_left_ = on_left_ - step;
      now_ = now_ + step;
      break;
    }
  }
  return at;
}

Generator::Generator(const GeneratorSettings& settings)
    : settings_(checked(settings)),
      random_(settings.seed),
      arrivals_(settings, random_.fork(1)),
      first_prompt_(lognormal(settings.first_prompt)),
      user_turn_(lognormal(settings.user_turn)),
      output_(lognormal(settings.output)),
      think_ms_(std::max(1.0, settings.think_mean_s * 1000), settings.think_sigma, 1, kThinkMaxMs),
      left_(settings.requests_total()) {}

bool Generator::next(TraceRequest& request) {
  if (left_ == 0) return false;
  --left_;
  const Time now = arrivals_.next();
  if (now.ns / milliseconds(1).ns >= kTimestampMaxMs) throw TraceError("arrivals go beyond 292 years");
  Conversation conversation;
  if (!take_due(now, conversation) || !go_on(conversation)) begin(conversation);
  conversation.output = Tokens{output_.draw(random_)};
  request.arrival = Time{} + milliseconds(now.ns / milliseconds(1).ns);
  request.input_length = conversation.input;
  request.output_length = conversation.output;
  request.hash_ids = conversation.ids;
  if (!happens(1 / settings_.turns_mean, random_)) wait_for_next_turn(now, std::move(conversation));
  return true;
}

bool Generator::take_due(Time now, Conversation& conversation) {
  if (waiting_.empty() || waiting_.begin()->first.first > now) return false;
  if (happens(settings_.new_conversation_probability, random_)) return false;
  conversation = std::move(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  return true;
}

void Generator::begin(Conversation& conversation) {
  conversation.ids.clear();
  const auto shared = static_cast<std::uint64_t>(settings_.shared_blocks);
  for (std::uint64_t id = 0; id < shared; ++id) conversation.ids.push_back(id);
  next_id_ = std::max(next_id_, shared);
  extend_to(Tokens{first_prompt_.draw(random_)}, conversation);
}

bool Generator::go_on(Conversation& conversation) {
  const Tokens input = conversation.input + conversation.output + Tokens{user_turn_.draw(random_)};
  if (input > settings_.prompt_max) return false;
  conversation.ids.resize(static_cast<std::size_t>(conversation.input.value / settings_.block_tokens.value));
  extend_to(input, conversation);
  return true;
}

void Generator::extend_to(Tokens input, Conversation& conversation) {
  conversation.input = input;
  const auto blocks = static_cast<std::size_t>(blocks_of(input, settings_.block_tokens));
  while (conversation.ids.size() < blocks) conversation.ids.push_back(next_id_++);
}

void Generator::wait_for_next_turn(Time now, Conversation conversation) {
  const Time due = now + milliseconds(think_ms_.draw(random_));
  waiting_.emplace(std::pair{due, left_}, std::move(conversation));
  if (static_cast<std::int64_t>(waiting_.size()) > settings_.conversations_max)
    waiting_.erase(std::prev(waiting_.end()));
}

}  // namespace kvlift
