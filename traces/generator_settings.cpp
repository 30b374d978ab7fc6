#include "traces/generator_settings.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "traces/error.hpp"

namespace kvlift {
namespace {

std::string text(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

void require(const std::string& field, double value, double min, double max) {
  if (value >= min && value <= max) return;
  throw TraceError(field + ": expected " + text(min) + " to " + text(max) + ", found " + text(value));
}

void require(const std::string& field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return;
  throw TraceError(field + ": expected " + std::to_string(min) + " to " + std::to_string(max) + ", found " +
                   std::to_string(value));
}

void require(const std::string& field, const LengthSettings& length, std::int64_t least) {
  constexpr std::int64_t kTokensMax = 1'000'000'000;
  require(field + ".mean", length.mean, 1.0, 1e9);
  require(field + ".sigma", length.sigma, 0.0, 5.0);
  require(field + ".min", length.min.value, least, kTokensMax);
  require(field + ".max", length.max.value, length.min.value, kTokensMax);
}

}  // namespace

std::int64_t GeneratorSettings::requests_total() const { return std::llround(static_cast<double>(requests) * scale); }

void GeneratorSettings::check() const {
  require("requests", requests, 1, 1'000'000'000);
  require("scale", scale, 1e-9, 1e6);
  require("requests times scale", requests_total(), 1, 1'000'000'000);
  require("block_tokens", block_tokens.value, 1, 1'000'000);
  require("rate_per_s", rate_per_s, 1e-6, 1e6);
  require("burst_on_s", burst_on_s, 1e-3, 1e6);
  require("burst_off_s", burst_off_s, 0.0, 1e6);
  require("shared_blocks", shared_blocks, 0, 1'000'000);
  require("conversations_max", conversations_max, 0, 1'000'000);
  require("turns_mean", turns_mean, 1.0, 1e6);
  require("new_conversation_probability", new_conversation_probability, 0.0, 1.0);
  require("think_mean_s", think_mean_s, 1e-3, 1e6);
  require("think_sigma", think_sigma, 0.0, 5.0);
  require("first_prompt", first_prompt, 1);
  require("user_turn", user_turn, 1);
  require("output", output, 0);
  require("prompt_max", prompt_max.value, first_prompt.max.value, 1'000'000'000);
  // A prompt holds the shared blocks and at least one token of its own.
  if (shared_blocks * block_tokens.value >= first_prompt.min.value) {
    throw TraceError("first_prompt.min: expected more than the " + std::to_string(shared_blocks * block_tokens.value) +
                     " tokens of shared_blocks, found " + std::to_string(first_prompt.min.value));
  }
}

}  // namespace kvlift
