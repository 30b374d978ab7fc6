#include "traces/reader.hpp"

#include <utility>

#include "traces/error.hpp"

namespace kvlift {

TraceReader::TraceReader(const std::string& path, Tokens block_tokens, std::size_t line_bytes_max)
    : TraceReader(open_bytes(path), path, block_tokens, line_bytes_max) {}

TraceReader::TraceReader(std::unique_ptr<ByteSource> bytes, const std::string& name, Tokens block_tokens,
                         std::size_t line_bytes_max)
    : lines_(std::move(bytes), name, line_bytes_max), parser_(block_tokens), block_tokens_(block_tokens) {
  if (block_tokens.value < 1) {
    throw TraceError(name + ": a block must have at least 1 token, not " + std::to_string(block_tokens.value));
  }
}

void TraceReader::fail(const std::string& what) const { throw TraceError(lines_.place() + ": " + what); }

bool TraceReader::next(TraceRequest& request) {
  std::string_view line;
  if (!lines_.next(line)) {
    if (lines_.number() == 0) throw TraceError(lines_.name() + ": the file is empty, a trace has at least one line");
    return false;
  }
  if (line.empty()) fail("the line is empty, expected a request");
  if (!parser_.parse(line, request)) fail(parser_.problem());
  if (request.arrival < last_arrival_) {
    fail("timestamp: expected at least " + std::to_string(last_arrival_.ns / milliseconds(1).ns) +
         ", the line before's (a trace is in order of arrival), found " +
         std::to_string(request.arrival.ns / milliseconds(1).ns));
  }
  last_arrival_ = request.arrival;
  return true;
}

}  // namespace kvlift
