// A trace as core's workload takes it.
#include "traces/request_source.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/traces/trace_text.hpp"

namespace kvlift {
namespace {

class RequestSourceOfATrace : public ::testing::Test {
 protected:
  RequestSourceOfATrace() {
    std::ofstream(folder_ / "t") << line_at(0) << "\n" << line_at(0) << "\n" << line_at(10) << "\n";
    settings_ = {.path = folder_ / "t", .block_tokens = kBlock, .spread = {}, .requests_max = 0};
  }
  std::vector<Request> drain() const {
    std::vector<Request> requests;
    const RequestSource source = open_requests(settings_);
    for (Request request; source(request);) requests.push_back(request);
    return requests;
  }
  Folder folder_;
  RequestSourceSettings settings_;
};

TEST_F(RequestSourceOfATrace, GivesRequestsNumberedInOrder) {
  const auto requests = drain();
  ASSERT_EQ(requests.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(requests[i].id, i);
    EXPECT_EQ(requests[i].input.value, 150);
    EXPECT_EQ(requests[i].output.value, 7);
    EXPECT_EQ(requests[i].block_ids, (std::vector<std::uint64_t>{0, 1}));
  }
  EXPECT_EQ(requests[2].arrival, Time{} + milliseconds(10));
}

TEST_F(RequestSourceOfATrace, SpreadsAsInTheWholeTraceAlsoWhenCutShort) {
  settings_.spread.kind = SpreadSettings::Kind::even;
  settings_.requests_max = 2;
  const auto requests = drain();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].arrival, Time{} + milliseconds(5));
}

TEST_F(RequestSourceOfATrace, CopiesShareOnePosition) {
  const RequestSource source = open_requests(settings_);
  const RequestSource copy = source;
  Request request;
  EXPECT_TRUE(source(request));
  EXPECT_TRUE(copy(request));
  EXPECT_EQ(request.id, 1U);
}

TEST_F(RequestSourceOfATrace, AFileThatIsNotThereIsFoundWhenOpened) {
  settings_.path += "absent";
  EXPECT_THROW(static_cast<void>(open_requests(settings_)), TraceError);
}

}  // namespace
}  // namespace kvlift
