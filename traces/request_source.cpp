#include "traces/request_source.hpp"

#include <memory>
#include <utility>

#include "traces/error.hpp"
#include "traces/prefix_tree.hpp"
#include "traces/reader.hpp"

namespace kvlift {

RequestSource open_requests(const RequestSourceSettings& settings) {
  auto reader = std::make_shared<TraceReader>(settings.path, settings.block_tokens);
  const auto next_in_tree = [reader, path = settings.path, tree = PrefixTree()](TraceRequest& request) mutable {
    if (!reader->next(request)) return false;
    const std::string wrong = tree.add(request.hash_ids);
    if (!wrong.empty()) throw TraceError(path + ":" + std::to_string(reader->line()) + ": hash_ids: " + wrong);
    return true;
  };
  auto spreader = std::make_shared<Spreader>(next_in_tree, settings.spread);
  return [spreader, max = static_cast<std::uint64_t>(settings.requests_max), given = std::make_shared<std::uint64_t>(0),
          line = std::make_shared<TraceRequest>()](Request& request) {
    if ((max != 0 && *given == max) || !spreader->next(*line)) return false;
    request.id = (*given)++;
    request.arrival = line->arrival;
    request.input = line->input_length;
    request.output = line->output_length;
    std::swap(request.block_ids, line->hash_ids);
    return true;
  };
}

}  // namespace kvlift
