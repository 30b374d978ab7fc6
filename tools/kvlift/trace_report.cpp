#include "tools/kvlift/trace_report.hpp"

#include <nlohmann/json.hpp>

#include "tools/experiment/number_text.hpp"
#include "tools/experiment/text_table.hpp"

namespace kvlift {
namespace {

using Json = nlohmann::ordered_json;
using experiment::fixed_text;
using experiment::rounded;
using experiment::TextTable;

double since_start_ms(Time t) { return to_milliseconds(t - Time{}); }

std::string with_share(std::int64_t count, std::int64_t of) {
  const double share = of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
  return std::to_string(count) + " (" + fixed_text(100 * share, 2) + " %)";
}

/// Milliseconds are shown in seconds.
void add_figures(TextTable& table, const std::string& name, const Figures& figures, bool is_ms = false) {
  std::vector<std::string> row = {name, fixed_text(is_ms ? figures.mean / 1000 : figures.mean, 1)};
  for (const std::int64_t value : {figures.min, figures.p50, figures.p90, figures.p99, figures.max}) {
    row.push_back(is_ms ? fixed_text(static_cast<double>(value) / 1000, 1) : std::to_string(value));
  }
  table.add(std::move(row));
}

Json figures_json(const Figures& figures) {
  return {{"mean", rounded(figures.mean, 3)},
          {"min", figures.min},
          {"p50", figures.p50},
          {"p90", figures.p90},
          {"p99", figures.p99},
          {"max", figures.max}};
}

}  // namespace

std::string trace_table(const std::string& file, const TraceInfo& info) {
  std::string out = file + ": " + std::to_string(info.requests) + " requests, blocks of " +
                    std::to_string(info.block_tokens.value) + " tokens\n";
  out += "arrivals from " + fixed_text(since_start_ms(info.first_arrival) / 1000, 3) + " to " +
         fixed_text(since_start_ms(info.last_arrival) / 1000, 3) + " s on " + std::to_string(info.distinct_stamps) +
         " distinct stamps, up to " + std::to_string(info.largest_tick) + " on one\n\n";

  TextTable figures({"", "mean", "min", "p50", "p90", "p99", "max"});
  add_figures(figures, "input tokens", info.input_tokens);
  add_figures(figures, "output tokens", info.output_tokens);
  add_figures(figures, "blocks per request", info.blocks);
  add_figures(figures, "reuse gap, s", info.reuse_gap_ms, true);
  out += figures.text() + "\n";

  TextTable counts({"blocks", std::to_string(info.blocks_total)});
  counts.add({"partial last blocks", with_share(info.partial_blocks, info.requests)});
  counts.add({"distinct ids", std::to_string(info.distinct_ids)});
  counts.add({"used once", with_share(info.used_once, info.distinct_ids)});
  counts.add({"hits, infinite cache", with_share(info.hits, info.blocks_total)});
  for (const LruPoint& point : info.lru) {
    counts.add({"hits, LRU of " + std::to_string(point.capacity_blocks) + " blocks",
                with_share(point.hits, info.blocks_total)});
  }
  out += counts.text();
  if (info.misplaced_ids > 0) {
    out += "\nnot a prefix tree: " + std::to_string(info.misplaced_ids) +
           " uses of an id behind another id than at its first use\n";
  }
  return out;
}

std::string trace_json(const std::string& file, const TraceInfo& info) {
  Json lru = Json::array();
  for (const LruPoint& point : info.lru) {
    lru.push_back({{"capacity_blocks", point.capacity_blocks},
                   {"hits", point.hits},
                   {"hit_rate", rounded(info.share_of_blocks(point.hits), 6)}});
  }
  const Json tree = {
      {"file", file},
      {"block_tokens", info.block_tokens.value},
      {"requests", info.requests},
      {"first_arrival_ms", since_start_ms(info.first_arrival)},
      {"last_arrival_ms", since_start_ms(info.last_arrival)},
      {"distinct_stamps", info.distinct_stamps},
      {"largest_tick", info.largest_tick},
      {"input_tokens", figures_json(info.input_tokens)},
      {"output_tokens", figures_json(info.output_tokens)},
      {"blocks_per_request", figures_json(info.blocks)},
      {"reuse_gap_ms", figures_json(info.reuse_gap_ms)},
      {"blocks", info.blocks_total},
      {"partial_last_blocks", info.partial_blocks},
      {"distinct_ids", info.distinct_ids},
      {"used_once", info.used_once},
      {"infinite_cache", {{"hits", info.hits}, {"hit_rate", rounded(info.share_of_blocks(info.hits), 6)}}},
      {"lru", lru},
      {"misplaced_ids", info.misplaced_ids}};
  return tree.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvlift
