#include "traces/request_source.hpp"

#include <memory>
#include <utility>

#include "traces/reader.hpp"

namespace kvlift {

RequestSource open_requests(const RequestSourceSettings& settings) {
  auto reader = std::make_shared<TraceReader>(settings.path, settings.block_tokens);
  auto spreader =
      std::make_shared<Spreader>([reader](TraceRequest& request) { return reader->next(request); }, settings.spread);
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
