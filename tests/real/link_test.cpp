// Each transfer is answered once, and its bytes are where they were to go; a marked object knows itself again.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <vector>

#include "real/local_link.hpp"
#include "real/payload.hpp"

namespace kvlift::real {
namespace {

std::vector<TransferDone> wait_for(Link& link, std::size_t count) {
  std::vector<TransferDone> done;
  while (done.size() < count) {
    pollfd wait{.fd = link.ready_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&wait, 1, 10'000), 1) << "no answer";
    link.poll(done);
  }
  return done;
}

TEST(LocalLink, CopiesBothWays) {
  std::vector<std::byte> here(100), there(100);
  for (std::size_t i = 0; i < 100; ++i) here[i] = static_cast<std::byte>(i), there[i] = static_cast<std::byte>(100 + i);
  LocalLink link({here.data(), 100}, {there.data(), 100});
  ASSERT_TRUE(link.post({.token = 1, .local = 10, .remote = 50, .bytes = 5}));
  ASSERT_TRUE(link.post({.token = 2, .direction = Transfer::Direction::read, .local = 90, .remote = 0, .bytes = 10}));
  const auto done = wait_for(link, 2);
  EXPECT_EQ(done[0].token, 1U);
  EXPECT_EQ(done[1].token, 2U);
  EXPECT_EQ(there[50], std::byte{10});
  EXPECT_EQ(there[54], std::byte{14});
  EXPECT_EQ(there[55], std::byte{155});
  EXPECT_EQ(here[90], std::byte{100});
}

TEST(LocalLink, OutsideTheMemoryIsAnErrorAndTouchesNothing) {
  std::vector<std::byte> memory(100, std::byte{7});
  LocalLink link({memory.data(), 100}, {memory.data(), 100});
  const Transfer wrong[] = {{.token = 1, .local = 99, .remote = 0, .bytes = 2},
                            {.token = 2, .local = 0, .remote = 101, .bytes = 1},
                            {.token = 3, .local = ~0ULL, .remote = 0, .bytes = 2},
                            {.token = 4, .local = 0, .remote = 50, .bytes = ~0ULL},
                            {.token = 5, .local = 0, .remote = 0, .bytes = 0}};
  for (const Transfer& t : wrong) ASSERT_TRUE(link.post(t));
  for (const TransferDone& done : wait_for(link, std::size(wrong))) EXPECT_EQ(done.error, Error::INVALID_PARAMS);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{7}), 100);
}

TEST(Payload, AnotherObjectsBytesAreNotTaken) {
  const ObjectKey mine{.key = {1, 2}}, other{.key = {1, 3}};
  for (const std::uint64_t bytes : {1ULL, 7ULL, 8ULL, 4095ULL, 4096ULL, 4097ULL, 300'000ULL}) {
    std::vector<std::byte> data(bytes);
    mark(mine, data.data(), bytes);
    EXPECT_TRUE(marked(mine, data.data(), bytes, 1)) << bytes;
    EXPECT_TRUE(bytes < 8 || !marked(other, data.data(), bytes)) << bytes;
  }
}

TEST(Payload, APageInTheWrongPlaceIsSeen) {
  const ObjectKey mine{.key = {1, 2}};
  std::vector<std::byte> data(64 * 4096);
  mark(mine, data.data(), data.size());
  std::swap_ranges(data.begin(), data.begin() + 4096, data.begin() + 16 * 4096);
  EXPECT_FALSE(marked(mine, data.data(), data.size()));
  EXPECT_TRUE(marked(mine, data.data(), 0));
}

}  // namespace
}  // namespace kvlift::real
