// The promotion chain as a table: every state, every answer, what is commanded next.
#include "core/promotion.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvlift {
namespace {

using State = Promotion::State;
using Command = Promotion::Command;
using Outcome = Promotion::Outcome;

constexpr Bytes kSize{4096};
const ObjectKey kKey{.key = {.high = 0, .low = 7}};

std::vector<Command> commands_of(const Promotion::Commands& c) { return {c.view().begin(), c.view().end()}; }

std::vector<Command> start(Promotion& p) {
  Promotion::Commands c;
  p.start(c);
  return commands_of(c);
}

std::vector<Command> answer(Promotion& p, Error error, Bytes moved = kSize) {
  Promotion::Commands c;
  p.on(error, moved, c);
  return commands_of(c);
}

/// A chain that was brought into `state` by successes.
Promotion at(State state) {
  Promotion p(Promotion::Origin::prefetch, kKey, kSize);
  start(p);
  while (p.state() != state) answer(p, Error::OK);
  return p;
}

TEST(Promotion, a_chain_that_meets_no_error_allocates_stages_reads_writes_and_commits) {
  Promotion p(Promotion::Origin::prefetch, kKey, kSize);
  EXPECT_EQ(start(p), std::vector{Command::register_task});
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::allocate});
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::stage});
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::read_ssd});
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::write_dram});
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::notify_success});
  EXPECT_EQ(answer(p, Error::OK), (std::vector{Command::release_staging, Command::finish}));
  EXPECT_EQ(p.outcome(), Outcome::completed);
  EXPECT_EQ(p.error(), Error::OK);
}

TEST(Promotion, an_on_hit_task_starts_at_the_allocation) {
  Promotion p(Promotion::Origin::on_hit, kKey, kSize);
  EXPECT_EQ(start(p), std::vector{Command::allocate});
}

struct Failure {
  const char* name;
  State in;
  Error error;
  Bytes moved;
  std::vector<Command> then;
  Error reported;
};

class EveryFailure : public testing::TestWithParam<Failure> {};

// RC-24, F1, F4: whatever goes wrong after the allocation was asked for is notified, once, and staging is given back.
TEST_P(EveryFailure, after_the_allocation_was_asked_for_is_notified_exactly_once) {
  const Failure& f = GetParam();
  Promotion p = at(f.in);
  EXPECT_EQ(answer(p, f.error, f.moved), f.then);
  EXPECT_EQ(p.state(), State::abandoning);
  EXPECT_EQ(p.error(), f.reported);
  EXPECT_EQ(answer(p, Error::OK), std::vector{Command::finish});
  EXPECT_EQ(p.outcome(), Outcome::failed);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryFailure,
                         testing::Values(Failure{"allocation_refused",
                                                 State::allocating,
                                                 Error::NO_AVAILABLE_HANDLE,
                                                 {},
                                                 {Command::notify_failure},
                                                 Error::NO_AVAILABLE_HANDLE},
                                         Failure{"allocation_unanswered",
                                                 State::allocating,
                                                 Error::RPC_TIMEOUT,
                                                 {},
                                                 {Command::notify_failure},
                                                 Error::RPC_TIMEOUT},
                                         Failure{"no_staging",
                                                 State::staging,
                                                 Error::BUFFER_OVERFLOW,
                                                 {},
                                                 {Command::notify_failure},
                                                 Error::BUFFER_OVERFLOW},
                                         Failure{"read_error",
                                                 State::reading,
                                                 Error::FILE_READ_FAIL,
                                                 {},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::FILE_READ_FAIL},
                                         Failure{"short_read",
                                                 State::reading,
                                                 Error::OK,
                                                 {4095},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::FILE_READ_FAIL},
                                         Failure{"empty_read",
                                                 State::reading,
                                                 Error::OK,
                                                 {0},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::FILE_READ_FAIL},
                                         Failure{"write_error",
                                                 State::writing,
                                                 Error::TRANSFER_FAIL,
                                                 {},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::TRANSFER_FAIL},
                                         Failure{"short_write",
                                                 State::writing,
                                                 Error::OK,
                                                 {1},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::TRANSFER_FAIL},
                                         Failure{"commit_refused",
                                                 State::committing,
                                                 Error::REPLICA_IS_NOT_READY,
                                                 {},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::REPLICA_IS_NOT_READY},
                                         Failure{"commit_unanswered",
                                                 State::committing,
                                                 Error::RPC_FAIL,
                                                 {},
                                                 {Command::release_staging, Command::notify_failure},
                                                 Error::RPC_FAIL}),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Promotion, a_refused_registration_ends_without_a_notice_since_there_is_no_task) {
  for (const Error refusal : {Error::OBJECT_NOT_FOUND, Error::REPLICA_IS_NOT_READY, Error::INVALID_PARAMS,
                              Error::KEYS_ULTRA_LIMIT, Error::UNAVAILABLE_IN_CURRENT_STATUS}) {
    Promotion p = at(State::registering);
    EXPECT_EQ(answer(p, refusal), std::vector{Command::finish});
    EXPECT_EQ(p.outcome(), Outcome::failed);
    EXPECT_EQ(p.error(), refusal);
  }
}

TEST(Promotion, an_unanswered_registration_is_abandoned_since_the_master_may_hold_a_task) {
  Promotion p = at(State::registering);
  EXPECT_EQ(answer(p, Error::RPC_TIMEOUT), std::vector{Command::notify_failure});
}

// RC-07: somebody else brings the key. That is neither a failure nor a reason to back off.
TEST(Promotion, a_task_or_replica_that_exists_already_is_skipped_quietly) {
  Promotion p = at(State::registering);
  EXPECT_EQ(answer(p, Error::PROMOTION_ALREADY_EXISTS), std::vector{Command::finish});
  EXPECT_EQ(p.outcome(), Outcome::skipped);
  EXPECT_EQ(p.error(), Error::OK);
}

TEST(Promotion, only_an_allocation_without_room_is_dram_pressure) {
  Promotion full = at(State::allocating);
  answer(full, Error::NO_AVAILABLE_HANDLE);
  EXPECT_TRUE(full.dram_pressure());
  Promotion quota = at(State::allocating);
  answer(quota, Error::TENANT_QUOTA_EXCEEDED);
  EXPECT_FALSE(quota.dram_pressure());
  Promotion staging = at(State::staging);
  answer(staging, Error::BUFFER_OVERFLOW);
  EXPECT_FALSE(staging.dram_pressure());
}

TEST(Promotion, a_task_without_a_size_is_reported_not_skipped) {  // RC-24
  for (const Bytes size : {Bytes{0}, Bytes{-1}}) {
    Promotion p(Promotion::Origin::on_hit, kKey, size);
    EXPECT_EQ(start(p), std::vector{Command::notify_failure});
  }
}

TEST(Promotion, a_failure_notice_that_is_not_answered_still_ends_the_chain) {
  Promotion p = at(State::reading);
  answer(p, Error::FILE_READ_FAIL);
  EXPECT_EQ(answer(p, Error::RPC_TIMEOUT), std::vector{Command::finish});
}

}  // namespace
}  // namespace kvlift
