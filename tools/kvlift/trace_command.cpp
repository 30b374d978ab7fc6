#include "tools/kvlift/trace_command.hpp"

#include <spdlog/spdlog.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/kvlift/experiment_command.hpp"
#include "tools/kvlift/trace_report.hpp"
#include "tools/kvlift/user_error.hpp"
#include "traces/error.hpp"
#include "traces/generator.hpp"
#include "traces/info.hpp"
#include "traces/reader.hpp"
#include "traces/spread.hpp"
#include "traces/writer.hpp"

namespace kvlift {
namespace {

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

const Choices<GeneratorSettings::Arrivals> kArrivals = {{"poisson", GeneratorSettings::Arrivals::poisson},
                                                        {"fixed", GeneratorSettings::Arrivals::fixed},
                                                        {"bursty", GeneratorSettings::Arrivals::bursty}};
const Choices<SpreadSettings::Kind> kSpreads = {{"none", SpreadSettings::Kind::none},
                                                {"even", SpreadSettings::Kind::even},
                                                {"uniform", SpreadSettings::Kind::uniform}};

/// The first choice is the default.
template <class Value>
void add_choice(CLI::App& command, const std::string& option, const std::string& what, const Choices<Value>& choices,
                Value& value) {
  std::vector<std::string> names;
  for (const auto& [name, of_name] : choices) names.push_back(name);
  value = choices.front().second;
  command
      .add_option_function<std::string>(
          option,
          [&choices, &value](const std::string& given) {
            for (const auto& [name, of_name] : choices) {
              if (name == given) value = of_name;
            }
          },
          what)
      ->check(CLI::IsMember(names))
      ->default_str(names.front());
}

/// What is wrong with a trace is for the user to put right.
template <class Work>
void with_user_errors(const Work& work) {
  try {
    work();
  } catch (const TraceError& error) {
    throw UserError(error.what());
  }
}

void add_block_tokens(CLI::App& command, std::int64_t& block_tokens) {
  command.add_option("--block-tokens", block_tokens, "Tokens that one hash id stands for: 512 in the published traces")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
}

struct PackingOptions {
  bool gzip = false, plain = false;

  void add_to(CLI::App& command) {
    CLI::Option* packed = command.add_flag("--gzip", gzip, "Write gzip (default when the name ends in .gz)");
    command.add_flag("--plain", plain, "Write plain text (default otherwise)")->excludes(packed);
  }
  Packing packing(const std::string& file) const {
    return gzip || (!plain && file.ends_with(".gz")) ? Packing::gzip : Packing::plain;
  }
};

// -- info ----------------------------------------------------------------------------------------------------

struct InfoOptions {
  std::string file, format = "table";
  std::int64_t block_tokens = 0;
};

void add_info(CLI::App& group) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = group.add_subcommand("info", "Lengths, arrivals, reuse, and hit rates by cache size");
  command->footer("Example:\n  kvlift trace info conversation_trace.jsonl --block-tokens 512");
  command->add_option("FILE", options->file, "Mooncake JSONL, plain or gzip")->required();
  add_block_tokens(*command, options->block_tokens);
  command->add_option("--format", options->format, "How to print")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([options] {
    with_user_errors([&] {
      TraceReader reader(options->file, Tokens{options->block_tokens});
      const TraceInfo info = describe(reader);
      print(options->format == "json" ? trace_json(options->file, info) : trace_table(options->file, info));
    });
  });
}

// -- gen -----------------------------------------------------------------------------------------------------

struct GenerateOptions {
  std::string out;
  GeneratorSettings settings;
  PackingOptions packing;
};

void add_length(CLI::App& command, const std::string& option, const std::string& what, LengthSettings& length) {
  command.add_option("--" + option + "-mean", length.mean, "Mean of " + what)->capture_default_str();
  command.add_option("--" + option + "-sigma", length.sigma, "Standard deviation of its logarithm")
      ->capture_default_str();
  command.add_option("--" + option + "-min", length.min.value, "Least")->capture_default_str();
  command.add_option("--" + option + "-max", length.max.value, "Most")->capture_default_str();
}

void add_generator_settings(CLI::App& command, GeneratorSettings& s) {
  command.add_option("--seed", s.seed, "Another seed, another trace")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command.add_option("--requests", s.requests, "How many")->capture_default_str();
  command.add_option("--scale", s.scale, "Times --requests, at the same rate")->capture_default_str();
  command.add_option("--block-tokens", s.block_tokens.value, "Tokens of a block")->capture_default_str();
  command.add_option("--rate-per-s", s.rate_per_s, "Requests a second, bursts and pauses together")
      ->capture_default_str();
  command.add_option("--burst-on-s", s.burst_on_s, "bursty: mean length of a burst")->capture_default_str();
  command.add_option("--burst-off-s", s.burst_off_s, "bursty: mean length of a pause")->capture_default_str();
  command.add_option("--shared-blocks", s.shared_blocks, "First blocks of every prompt")->capture_default_str();
  command.add_option("--conversations-max", s.conversations_max, "That wait for their next turn")
      ->check(CLI::Range(1, 1'000'000))  // 0 would end every conversation at its first: --turns-mean 1
      ->capture_default_str();
  command.add_option("--turns-mean", s.turns_mean, "Turns of a conversation")->capture_default_str();
  command
      .add_option("--new-conversation-probability", s.new_conversation_probability,
                  "That an arrival opens one although another is due")
      ->capture_default_str();
  command.add_option("--think-mean-s", s.think_mean_s, "From a turn until the next is due")->capture_default_str();
  command.add_option("--think-sigma", s.think_sigma, "Standard deviation of its logarithm")->capture_default_str();
  add_length(command, "first-prompt", "the first prompt's tokens", s.first_prompt);
  add_length(command, "user-turn", "a later turn's new tokens", s.user_turn);
  add_length(command, "output", "the answer's tokens", s.output);
  command.add_option("--prompt-max", s.prompt_max.value, "A conversation that would grow beyond ends")
      ->capture_default_str();
}

void add_generate(CLI::App& group) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = group.add_subcommand("gen", "Make a trace up; one seed gives one file");
  command->footer(
      "Examples:\n"
      "  kvlift trace gen --out hour.jsonl\n"
      "  kvlift trace gen --out quarter.jsonl.gz --scale 0.25 --seed 7");
  command->add_option("--out", options->out, "File to write")->required();
  add_choice(*command, "--arrivals", "How requests follow each other", kArrivals, options->settings.arrivals);
  add_generator_settings(*command, options->settings);
  options->packing.add_to(*command);
  command->callback([options, command] {
    if (options->settings.arrivals != GeneratorSettings::Arrivals::bursty) {
      for (const char* name : {"--burst-on-s", "--burst-off-s"}) {
        if (command->count(name) > 0) throw UserError(std::string(name) + ": is for --arrivals bursty only");
      }
    }
    with_user_errors([&] {
      Generator generator(options->settings);
      TraceWriter writer(options->out, options->packing.packing(options->out));
      TraceRequest request;
      while (generator.next(request)) writer.write(request);
      writer.commit();
      spdlog::info("{}: {} requests", options->out, options->settings.requests_total());
    });
  });
}

// -- convert -------------------------------------------------------------------------------------------------

struct ConvertOptions {
  std::string in, out;
  std::int64_t block_tokens = 0, limit = 0;
  SpreadSettings spread;
  double scale_time = 1;
  PackingOptions packing;
};

/// Half of what a Time holds: no rounding leads out of it.
constexpr double kScaledMaxMs = static_cast<double>(kTimestampMaxMs) / 2;

Time scaled(Time arrival, double factor) {
  const double ms = to_milliseconds(arrival - Time{}) * factor;
  if (ms > kScaledMaxMs) throw UserError("--scale-time: arrivals go beyond 146 years");
  return Time{} + nanoseconds(std::llround(ms * 1e6));
}

void convert(const ConvertOptions& options) {
  TraceReader reader(options.in, Tokens{options.block_tokens});
  Spreader spreader([&](TraceRequest& request) { return reader.next(request); }, options.spread);
  TraceWriter writer(options.out, options.packing.packing(options.out));
  TraceRequest request;
  std::int64_t written = 0;
  while ((options.limit == 0 || written < options.limit) && spreader.next(request)) {
    if (options.scale_time != 1) request.arrival = scaled(request.arrival, options.scale_time);
    writer.write(request);
    ++written;
  }
  writer.commit();
  spdlog::info("{}: {} requests written; read: {}", options.out, written, to_text(spreader.report()));
}

void add_convert(CLI::App& group) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = group.add_subcommand("convert", "Check a trace and write it again: packed, spread, scaled, cut");
  command->footer(
      "Examples:\n"
      "  kvlift trace convert trace.jsonl trace.jsonl.gz --block-tokens 512\n"
      "  kvlift trace convert trace.jsonl twice-as-fast.jsonl --block-tokens 512 --spread even --scale-time 0.5");
  command->add_option("IN", options->in, "Mooncake JSONL, plain or gzip")->required();
  command->add_option("OUT", options->out, "File to write")->required();
  add_block_tokens(*command, options->block_tokens);
  add_choice(*command, "--spread", "Sets requests with one stamp apart until the next stamp", kSpreads,
             options->spread.kind);
  command->add_option("--spread-seed", options->spread.seed, "uniform: the seed")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command->add_option("--scale-time", options->scale_time, "Times every arrival; 0.5 doubles the rate")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  command->add_option("--limit", options->limit, "Stop after so many requests (default: all)")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
  options->packing.add_to(*command);
  command->callback([options] { with_user_errors([&] { convert(*options); }); });
}

}  // namespace

void add_trace_command(CLI::App& program) {
  CLI::App* group = program.add_subcommand("trace", "Look at a request trace, make one up, rewrite one");
  group->require_subcommand(1);
  add_info(*group);
  add_generate(*group);
  add_convert(*group);
}

}  // namespace kvlift
