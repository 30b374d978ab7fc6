// Each request is answered once with the bytes that came, whatever the kernel answers and in whatever order.
#include "real/ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "real/error.hpp"
#include "real/io_error.hpp"
#include "tests/real/allocations.hpp"
#include "tests/real/fake_kernel.hpp"

namespace kvlift::real {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kPageBytes = 4096;

class RingTest : public ::testing::Test {
 protected:
  void TearDown() override { release(); }  // the ring waits for what is under way
  void open(const RingSettings& settings, bool direct = false) {
    ring_ = std::make_unique<Ring>(std::make_unique<FakeKernel>(state_, content_), settings);
    ring_->on_step_down = [this](const std::string& line) { steps_.push_back(line); };
    file_ = ring_->attach(-1, direct);
  }
  RingRequest read(std::uint64_t token, std::uint64_t bytes, std::uint64_t offset = 0) {
    return {.token = token, .file = file_, .data = buffer_.data() + offset, .bytes = bytes, .offset = offset};
  }
  std::vector<RingDone> poll(Time now = Time{}) {
    std::vector<RingDone> done;
    ring_->poll(now, done);
    ring_->poll(now, done);
    return done;
  }
  /// What comes first, within as many polls as any of these tests needs.
  std::vector<RingDone> answers() {
    std::vector<RingDone> done;
    for (int i = 0; i < 2000 && done.empty(); ++i) ring_->poll(Time{}, done);
    return done;
  }
  bool arrived(std::uint64_t bytes, std::uint64_t offset = 0) const {
    return std::memcmp(buffer_.data() + offset, content_.at(offset), bytes) == 0;
  }
  /// Nothing ends until `release()`.
  void hold() {
    state_.pick = [](const auto& under_way) { return under_way.size(); };
  }
  void release() {
    state_.pick = [](const auto&) { return std::size_t{0}; };
  }

  FakeContent content_;
  FakeKernelState state_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1U << 16);
  std::vector<std::string> steps_;
  std::unique_ptr<Ring> ring_;
  int file_ = -1;
};

TEST_F(RingTest, AShortPieceGoesOnWhereItStopped) {
  open({.piece_bytes = kPageBytes});
  state_.answer = [](const KernelRequest& ask) { return static_cast<int>(std::min(ask.bytes, 1000U)); };
  ASSERT_TRUE(ring_->start(read(7, 10'000)));
  const auto done = answers();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].token, 7U);
  EXPECT_EQ(done[0].error, Error::OK);
  EXPECT_EQ(done[0].bytes, 10'000U);
  EXPECT_TRUE(arrived(10'000));
}

TEST_F(RingTest, TheEndOfTheFileIsAnErrorThatTellsHowMuchCame) {
  open({.piece_bytes = kPageBytes});
  state_.answer = [](const KernelRequest& ask) {
    const std::uint64_t end = 9'000;
    return static_cast<int>(ask.offset >= end ? 0 : std::min<std::uint64_t>(ask.bytes, end - ask.offset));
  };
  ASSERT_TRUE(ring_->start(read(1, 20'000)));
  const auto done = answers();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].error, Error::FILE_READ_FAIL);
  EXPECT_EQ(done[0].cause, ENODATA);
  EXPECT_EQ(done[0].bytes, 9'000U);
}

TEST_F(RingTest, AnErrorInTheMiddleLeavesTheBytesBeforeIt) {
  open({.piece_bytes = kPageBytes});
  state_.answer = [](const KernelRequest& ask) {
    return ask.offset == 2 * kPageBytes ? -EIO : static_cast<int>(ask.bytes);
  };
  ASSERT_TRUE(ring_->start(read(1, 6 * kPageBytes)));
  const auto done = poll();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].cause, EIO);
  EXPECT_EQ(done[0].bytes, 2 * kPageBytes);
}

TEST_F(RingTest, AWriteThatFindsTheDiskFullFailsAlone) {
  open({});
  state_.answer = [](const KernelRequest& ask) {
    return ask.kind == KernelRequest::Kind::write ? -ENOSPC : static_cast<int>(ask.bytes);
  };
  RingRequest write = read(1, kPageBytes);
  write.kind = RingRequest::Kind::write;
  ASSERT_TRUE(ring_->start(write));
  ASSERT_TRUE(ring_->start(read(2, kPageBytes)));
  const auto done = poll();
  ASSERT_THAT(done, SizeIs(2));
  EXPECT_EQ(done[0].error, Error::FILE_WRITE_FAIL);
  EXPECT_EQ(done[0].cause, ENOSPC);
  EXPECT_EQ(done[1].error, Error::OK);
}

TEST_F(RingTest, EagainComesAgainAThousandTimesAndIsAnErrorThen) {
  open({});
  int left = 1000;
  state_.answer = [&](const KernelRequest& ask) { return left-- > 0 ? -EAGAIN : static_cast<int>(ask.bytes); };
  ASSERT_TRUE(ring_->start(read(1, kPageBytes)));
  auto done = answers();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].error, Error::OK);
  left = 1'000'000;
  ASSERT_TRUE(ring_->start(read(2, kPageBytes)));
  done = answers();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].cause, EAGAIN);
}

TEST_F(RingTest, TheWindowIsNeverWiderThanItsDepthAndBackgroundHasItsShare) {
  open({.depth = 8, .background_depth = 2, .piece_bytes = kPageBytes});
  hold();
  RingRequest background = read(1, 16 * kPageBytes);
  background.background = true;
  ASSERT_TRUE(ring_->start(background));
  EXPECT_THAT(poll(), IsEmpty());
  EXPECT_THAT(state_.under_way, SizeIs(2)) << "background takes no more than its share of an idle device";
  ASSERT_TRUE(ring_->start(read(2, 10 * kPageBytes)));
  EXPECT_THAT(poll(), IsEmpty());
  EXPECT_THAT(state_.under_way, SizeIs(8));
  release();
  std::vector<RingDone> done;
  while (done.size() < 2) ring_->poll(Time{}, done);
  EXPECT_EQ(done[0].token, 2U) << "demand goes first";
  EXPECT_LE(state_.most_under_way, 8U);
}

TEST_F(RingTest, TheWindowIsRefilledPieceByPiece) {
  open({.depth = 4, .piece_bytes = kPageBytes});
  hold();
  ASSERT_TRUE(ring_->start(read(1, 8 * kPageBytes)));
  poll();
  ASSERT_THAT(state_.under_way, SizeIs(4));
  bool one = true;
  state_.pick = [&](const auto& under_way) { return std::exchange(one, false) ? std::size_t{0} : under_way.size(); };
  std::vector<RingDone> done;
  ring_->poll(Time{}, done);
  EXPECT_THAT(state_.under_way, SizeIs(4)) << "the next piece goes out when one has come, not when all have";
}

TEST_F(RingTest, AFullRingRefusesAndGoesOnLater) {
  open({.requests_max = 2});
  hold();
  EXPECT_TRUE(ring_->start(read(1, kPageBytes)));
  EXPECT_TRUE(ring_->start(read(2, kPageBytes)));
  EXPECT_FALSE(ring_->start(read(3, kPageBytes)));
  release();
  EXPECT_THAT(poll(), SizeIs(2));
  EXPECT_TRUE(ring_->start(read(3, kPageBytes)));
}

TEST_F(RingTest, ADeadlineAnswersTheCallerAndKeepsTheBufferUntilTheDeviceIsDone) {
  open({});
  hold();
  RingRequest request = read(5, kPageBytes);
  request.deadline = Time{1000};
  ASSERT_TRUE(ring_->start(request));
  EXPECT_THAT(poll(Time{999}), IsEmpty());
  EXPECT_EQ(ring_->next_deadline(), Time{1000});
  auto done = poll(Time{1000});
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].cause, ETIMEDOUT);
  EXPECT_TRUE(done[0].held);
  EXPECT_EQ(done[0].bytes, 0U);
  EXPECT_EQ(ring_->under_way(), 1U) << "the device may still write into the buffer";
  EXPECT_THAT(poll(Time{2000}), IsEmpty());
  release();
  done = poll(Time{3000});
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_TRUE(done[0].released);
  EXPECT_EQ(state_.cancels, 1U);
  EXPECT_EQ(ring_->under_way(), 0U);
}

TEST_F(RingTest, ADeadlineOfWhatHasNotBegunHoldsNothing) {
  open({.depth = 1});
  hold();
  ASSERT_TRUE(ring_->start(read(1, kPageBytes)));
  RingRequest late = read(2, kPageBytes);
  late.deadline = Time{10};
  ASSERT_TRUE(ring_->start(late));
  poll();
  const auto done = poll(Time{10});
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].token, 2U);
  EXPECT_FALSE(done[0].held);
}

TEST_F(RingTest, ACancelledRequestIsAnsweredOnceAndMayHaveBeenTooLate) {
  open({.depth = 1});
  hold();
  ASSERT_TRUE(ring_->start(read(1, kPageBytes)));
  ASSERT_TRUE(ring_->start(read(2, kPageBytes)));
  poll();
  ring_->cancel(1);
  ring_->cancel(2);
  const auto first = poll();
  ASSERT_THAT(first, SizeIs(1)) << "what has not begun is answered at once";
  EXPECT_EQ(first[0].token, 2U);
  EXPECT_EQ(first[0].cause, ECANCELED);
  release();
  const auto second = poll();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].token, 1U);
  EXPECT_EQ(second[0].error, Error::OK);
  EXPECT_TRUE(arrived(kPageBytes));
}

TEST_F(RingTest, NothingIsUnderWayWhenTheRingIsGone) {
  open({.depth = 2, .piece_bytes = kPageBytes});
  hold();
  ASSERT_TRUE(ring_->start(read(1, 8 * kPageBytes)));
  poll();
  ASSERT_THAT(state_.under_way, SizeIs(2));
  int polls = 0;
  state_.pick = [&](const auto& under_way) { return ++polls < 5 ? under_way.size() : std::size_t{0}; };
  ring_.reset();
  EXPECT_THAT(state_.under_way, IsEmpty());
}

TEST_F(RingTest, OtherThreadsHandInUpToABound) {
  open({.hand_in_max = 3});
  std::thread other([&] {
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(ring_->hand_in(read(i, kPageBytes, i * kPageBytes)));
    EXPECT_FALSE(ring_->hand_in(read(9, kPageBytes)));
  });
  other.join();
  std::set<std::uint64_t> tokens;
  for (const RingDone& d : poll()) tokens.insert(d.token);
  EXPECT_THAT(tokens, ElementsAre(0, 1, 2));
  EXPECT_TRUE(ring_->hand_in(read(9, kPageBytes)));
}

TEST_F(RingTest, MemoryIsRegisteredInRangesAndAPieceAcrossTwoIsSplit) {
  state_.range_max = 2 * kPageBytes;
  open({.piece_bytes = 4 * kPageBytes}, true);
  const Memory memory{buffer_.data(), 8 * kPageBytes};
  ring_->register_memory({&memory, 1});
  EXPECT_THAT(state_.ranges, SizeIs(4));
  std::set<std::int32_t> used;
  state_.answer = [&](const KernelRequest& ask) {
    used.insert(ask.memory);
    EXPECT_LE(ask.bytes, 2 * kPageBytes);
    return static_cast<int>(ask.bytes);
  };
  ASSERT_TRUE(ring_->start(read(1, 8 * kPageBytes)));
  std::vector<RingDone> done;
  while (done.empty()) ring_->poll(Time{}, done);
  EXPECT_EQ(done[0].error, Error::OK);
  EXPECT_THAT(used, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(arrived(8 * kPageBytes));
}

TEST_F(RingTest, EachStepDownIsCountedAndToldOnce) {
  state_.range_max = 1U << 30;
  open({.piece_bytes = kPageBytes}, true);
  const Memory memory{buffer_.data(), buffer_.size()};
  ring_->register_memory({&memory, 1});
  int plain_refusals = 0;
  state_.answer = [&](const KernelRequest& ask) {
    if (ask.memory >= 0) return -EFAULT;
    if (plain_refusals < 8) return ++plain_refusals, -EINVAL;
    return static_cast<int>(ask.bytes);
  };
  ASSERT_TRUE(ring_->start(read(1, 8 * kPageBytes)));
  const auto done = answers();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].error, Error::OK);
  EXPECT_EQ(ring_->counters().steps_unregistered, 1U);
  EXPECT_EQ(ring_->counters().steps_buffered, 1U);
  EXPECT_THAT(steps_, ElementsAre(HasSubstr("Bad address"), HasSubstr("Invalid argument")));
  EXPECT_THAT(ring_->describe(), HasSubstr("stepped down 2 times"));
}

TEST_F(RingTest, StrictFailsInsteadOfSteppingDown) {
  state_.range_max = 1U << 30;
  state_.register_result = -ENOMEM;
  open({.strict = true}, true);
  const Memory memory{buffer_.data(), buffer_.size()};
  EXPECT_THROW(ring_->register_memory({&memory, 1}), RealError);
  state_.answer = [](const KernelRequest&) { return -EINVAL; };
  ASSERT_TRUE(ring_->start(read(1, kPageBytes)));
  const auto done = poll();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].cause, EINVAL);
  EXPECT_THAT(steps_, IsEmpty());
}

TEST_F(RingTest, ARefusedSubmitLosesNothing) {
  open({});
  state_.submit_result = -EAGAIN;
  ASSERT_TRUE(ring_->start(read(1, kPageBytes)));
  EXPECT_THAT(poll(), IsEmpty());
  state_.submit_result = 0;
  EXPECT_THAT(poll(), SizeIs(1));
}

TEST_F(RingTest, NothingIsAllocatedPerRequest) {
  open({.piece_bytes = kPageBytes});
  std::vector<RingDone> done;
  done.reserve(64);
  const auto round = [&] {
    for (std::uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(ring_->start(read(i, 3 * kPageBytes)));
    while (done.size() < 16) ring_->poll(Time{}, done);
    done.clear();
  };
  round();
  const std::uint64_t before = allocations();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(allocations(), before);
}

// Draws every result: full, short, empty, failed, asked to come again; in any order; with deadlines and cancellations.
TEST(RingResults, RandomOnesNeverGiveWrongBytesAndAnswerEachRequestOnce) {
  const std::uint64_t results_wanted = std::getenv("KVLIFT_SEEDS") != nullptr ? 200'000 : 10'000'000;
  FakeContent content;
  FakeKernelState state;
  Random random(4);
  Ring ring(std::make_unique<FakeKernel>(state, content), {.depth = 16, .requests_max = 64, .piece_bytes = kPageBytes});
  const int file = ring.attach(-1, false);
  constexpr std::uint64_t kSlot = 3 * kPageBytes;
  struct Expected {
    RingRequest request;
    bool answered = false, over = false, spoilt = false;
  };
  std::map<std::uint64_t, Expected> open;
  std::vector<std::byte> memory(64 * kSlot);
  std::vector<std::uint64_t> free_slots;
  for (std::uint64_t i = 0; i < 64; ++i) free_slots.push_back(i);
  std::vector<std::uint64_t> token_of(64);
  const auto slot_of = [&](const std::byte* data) { return static_cast<std::uint64_t>(data - memory.data()) / kSlot; };

  std::uint64_t results = 0, ok = 0, wrong = 0;
  state.pick = [&](const auto& under_way) {
    return random.chance(1, 8) ? under_way.size() : static_cast<std::size_t>(random.below(under_way.size()));
  };
  state.answer = [&](const KernelRequest& ask) {
    ++results;
    Expected& e = open.at(token_of[slot_of(ask.data)]);
    const std::uint64_t draw = random.below(100);
    if (draw < 55) return static_cast<int>(ask.bytes);
    if (draw < 85) return 1 + static_cast<int>(random.below(ask.bytes));
    if (draw < 92) return draw % 2 == 0 ? -EAGAIN : -EINTR;
    e.spoilt = true;
    constexpr int kHard[] = {0, -EIO, -ENODATA, -ECANCELED, -EINVAL, -ENOSPC, -ENXIO};
    return kHard[random.below(std::size(kHard))];
  };
  std::uint64_t next_token = 0;
  std::int64_t now = 0;
  std::vector<RingDone> done;
  while (results < results_wanted || !open.empty()) {
    ++now;
    while (results < results_wanted && !free_slots.empty() && random.chance(3, 4)) {
      const std::uint64_t slot = free_slots.back();
      free_slots.pop_back();
      RingRequest request{.token = next_token++,
                          .background = random.chance(1, 4),
                          .file = file,
                          .data = memory.data() + slot * kSlot,
                          .bytes = 1 + random.below(kSlot),
                          .offset = random.below(FakeContent::kPeriod)};
      if (random.chance(1, 20)) request.deadline = Time{now + 1 + static_cast<std::int64_t>(random.below(20))};
      std::memset(request.data, 0x5a, request.bytes);
      token_of[slot] = request.token;
      open[request.token] = {.request = request};
      ASSERT_TRUE(ring.start(request));
    }
    if (random.chance(1, 50) && !open.empty()) {
      open.begin()->second.spoilt = true;
      ring.cancel(open.begin()->first);
    }
    done.clear();
    ring.poll(Time{now}, done);
    for (const RingDone& d : done) {
      const auto at = open.find(d.token);
      ASSERT_NE(at, open.end()) << "answered although it was over: " << d.token;
      Expected& e = at->second;
      const bool answers = !d.released;
      ASSERT_EQ(e.answered, d.released) << "token " << d.token;
      if (answers) {
        e.answered = true;
        ASSERT_LE(d.bytes, e.request.bytes);
        wrong += std::memcmp(e.request.data, content.at(e.request.offset), d.bytes) != 0 ? 1 : 0;
        ASSERT_EQ(d.error == Error::OK, d.bytes == e.request.bytes) << "cause " << d.cause;
        if (d.error == Error::OK) ++ok;
        ASSERT_TRUE(e.spoilt || d.cause == ETIMEDOUT || d.error == Error::OK) << "cause " << d.cause;
      }
      if (d.held) continue;
      const std::uint64_t slot = slot_of(e.request.data);
      const auto uses = [&](const KernelRequest& k) { return k.data != nullptr && slot_of(k.data) == slot; };
      ASSERT_TRUE(std::none_of(state.under_way.begin(), state.under_way.end(), uses)) << "given back while in use";
      free_slots.push_back(slot);
      open.erase(at);
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(ok, results / 20) << "most of the answers would otherwise be errors, and the test would see little";
  EXPECT_EQ(ring.under_way(), 0U);
}

TEST(IoCause, TellsWhatToDoAndAnUnknownOneIsAFailure) {
  EXPECT_EQ(io_cause(EAGAIN).answer, IoAnswer::retry);
  EXPECT_EQ(io_cause(EINVAL).answer, IoAnswer::step_down);
  EXPECT_EQ(io_cause(ENOSPC).answer, IoAnswer::no_room);
  EXPECT_EQ(io_cause(ECANCELED).answer, IoAnswer::cancelled);
  EXPECT_EQ(io_cause(EIO).answer, IoAnswer::failed);
  EXPECT_EQ(io_cause(54'321).answer, IoAnswer::failed);
}

}  // namespace
}  // namespace kvlift::real
