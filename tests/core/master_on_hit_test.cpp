// Promotion-on-hit: its gates in their order, retries of refusals that may pass, the hand-out to holders.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;
using Keys = std::vector<std::uint64_t>;

/// First touch passes the sketch; a pool of 10 blocks is at its watermark with 9.
MasterSettings eager() {
  MasterSettings s = quiet_settings();
  s.promotion_admission_threshold = 1;
  return s;
}

MasterWorld::Setup on_hit(MasterSettings s = eager()) {
  return {.blocks = 10, .nodes = 2, .settings = s, .policy = on_hit_policy()};
}

// -- the gates ----------------------------------------------------------------------------------------------------

struct Gate {
  const char* name;
  std::int64_t threshold, cap;
  bool full;  ///< the pool is at its watermark
  std::function<void(MasterWorld&)> prepare;
  std::uint64_t MasterCounters::*counted;
};

class OnHitGate : public testing::TestWithParam<Gate> {};

/// Key 1 is on SSD of node 0 and asked for once.
TEST_P(OnHitGate, the_first_gate_that_refuses_counts) {
  MasterSettings s = eager();
  s.promotion_admission_threshold = GetParam().threshold;
  s.promotion_queue_limit = GetParam().cap;
  s.promotion_on_hit = true;
  MasterWorld w(on_hit(s));
  w.on_ssd(1);
  GetParam().prepare(w);
  for (std::uint64_t k = 100; GetParam().full && w.used_blocks() < 18; ++k) w.put(k);
  const std::uint64_t before = w.counters().*GetParam().counted;
  EXPECT_EQ(w.get(1).error, Error::OK) << "the answer of the query does not depend on the gates";
  EXPECT_EQ(w.counters().*GetParam().counted, before + 1);
}

void with_task(MasterWorld& w) { ASSERT_EQ(w.enrol(1), Error::OK); }
void nothing(MasterWorld&) {}

INSTANTIATE_TEST_SUITE_P(
    Table, OnHitGate,
    testing::Values(Gate{"frequency_before_watermark", 2, 0, true, nothing, &MasterCounters::on_hit_frequency},
                    Gate{"watermark_before_task", 1, 1, true, with_task, &MasterCounters::on_hit_watermark},
                    Gate{"task_before_cap", 1, 1, false, with_task, &MasterCounters::on_hit_in_flight},
                    Gate{"cap_last", 1, 0, false, nothing, &MasterCounters::on_hit_cap},
                    Gate{"open", 1, 1, false, nothing, &MasterCounters::on_hit_queued}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(OnHit, the_watermark_gate_closes_at_the_watermark_where_eviction_still_rests) {
  MasterSettings s = eager();
  s.eviction_high_watermark_ratio = 0.5;
  MasterWorld w(on_hit(s));
  w.on_ssd(1, 2);
  w.put_all(100, 9);
  (void)w.get(1);
  EXPECT_EQ(w.counters().on_hit_queued, 1u) << "9 of 20";
  w.put(109);
  (void)w.get(2);
  EXPECT_EQ(w.counters().on_hit_watermark, 1u) << "10 of 20";
  w.tick();
  EXPECT_EQ(w.counters().eviction_cycles, 0u);
}

TEST(OnHit, the_threshold_counts_touches) {
  MasterSettings s = eager();
  s.promotion_admission_threshold = 3;
  MasterWorld w(on_hit(s));
  w.on_ssd(1);
  (void)w.get(1);
  (void)w.get(1);
  EXPECT_EQ(w.in_flight(), 0);
  (void)w.get(1);
  EXPECT_EQ(w.in_flight(), 1);
}

TEST(OnHit, a_threshold_outside_1_to_255_is_clamped) {
  for (const auto& [threshold, touches] : {std::pair{0, 1}, std::pair{1'000, 255}}) {
    MasterSettings s = eager();
    s.promotion_admission_threshold = threshold;
    MasterWorld w(on_hit(s));
    w.on_ssd(1);
    for (int i = 1; i < touches; ++i) (void)w.get(1);
    EXPECT_EQ(w.in_flight(), 0);
    (void)w.get(1);
    EXPECT_EQ(w.in_flight(), 1);
  }
}

TEST(OnHit, an_object_in_memory_is_not_even_counted) {
  MasterWorld w(on_hit());
  w.put(1);
  w.on_ssd(1);
  (void)w.get(1);
  EXPECT_EQ(w.counters().on_hit_queued + w.counters().on_hit_memory_present, 0u);
}

TEST(OnHit, a_holder_that_is_gone_is_no_source) {
  MasterWorld w(on_hit());
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);  // keeps the object while its holder drains
  ASSERT_EQ(w.master.drain_disk(kNode0, w.now), Error::OK);
  EXPECT_EQ(w.get(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.in_flight(), 0);
}

TEST(OnHit, is_off_unless_the_policy_or_the_setting_asks_for_it) {
  MasterWorld off({.settings = eager()});
  off.on_ssd(1);
  (void)off.get(1);
  EXPECT_EQ(off.in_flight(), 0);
  MasterSettings s = eager();
  s.promotion_on_hit = true;
  MasterWorld on({.settings = s});
  on.on_ssd(1);
  (void)on.get(1);
  EXPECT_EQ(on.in_flight(), 1);
}

// -- retries ------------------------------------------------------------------------------------------------------

/// One key refused at the watermark at time 0; `room` puts the pool below it.
struct Refused {
  explicit Refused(MasterSettings s = eager()) : w(on_hit(s)) {
    w.on_ssd(1);
    for (std::uint64_t k = 100; k < 118; ++k) w.put(k);
    (void)w.get(1);
    EXPECT_EQ(w.counters().on_hit_watermark, 1u);
  }
  void room() { EXPECT_EQ(w.remove(100), Error::OK); }
  MasterWorld w;
};

TEST(OnHitRetry, a_key_refused_under_pressure_is_queued_when_the_pressure_ends_without_another_get) {  // RC-05
  Refused r;
  r.w.run_to(milliseconds(100));
  r.room();
  r.w.run_to(seconds(1));
  EXPECT_EQ(r.w.counters().on_hit_queued, 1u);
  EXPECT_EQ(r.w.pull(), Keys{1});
}

TEST(OnHitRetry, the_back_off_doubles_from_ten_milliseconds) {
  Refused r;
  // The first try is due at once; tries at 10, then 10, 20, 40 ... later, each on the 10 ms grid.
  const std::vector<std::int64_t> tries{10, 20, 40, 80, 160, 320, 640, 1280};
  for (std::size_t n = 0; n < tries.size(); ++n) {
    r.w.run_to(milliseconds(tries[n] - 1));
    EXPECT_EQ(r.w.counters().on_hit_retried, n) << tries[n];
    r.w.run_to(milliseconds(tries[n]));
    EXPECT_EQ(r.w.counters().on_hit_retried, n + 1) << tries[n];
  }
}

TEST(OnHitRetry, the_back_off_is_at_most_a_second) {
  MasterSettings s = eager();
  s.retry_candidate_tries = 12;
  Refused r(s);
  r.w.run_to(milliseconds(1'280));
  ASSERT_EQ(r.w.counters().on_hit_retried, 8u);
  r.w.run_to(milliseconds(2'279));
  ASSERT_EQ(r.w.counters().on_hit_retried, 8u);
  r.w.run_to(milliseconds(2'280));
  EXPECT_EQ(r.w.counters().on_hit_retried, 9u);
}

TEST(OnHitRetry, after_eight_tries_it_is_given_up) {
  Refused r;
  r.w.run_to(seconds(10));
  EXPECT_EQ(r.w.counters().on_hit_retried, 8u);
  EXPECT_EQ(r.w.counters().on_hit_given_up, 1u);
  r.room();
  r.w.run_to(seconds(20));
  EXPECT_EQ(r.w.in_flight(), 0);
}

TEST(OnHitRetry, after_sixty_seconds_it_is_given_up) {
  MasterSettings s = eager();
  s.retry_candidate_tries = 1'000;
  Refused r(s);
  r.w.run_to(seconds(60));
  EXPECT_EQ(r.w.counters().on_hit_given_up, 0u);
  r.w.run_to(seconds(62));
  EXPECT_EQ(r.w.counters().on_hit_given_up, 1u);
}

TEST(OnHitRetry, a_new_refusal_begins_anew) {
  Refused r;
  r.w.run_to(milliseconds(1'500));
  ASSERT_EQ(r.w.counters().on_hit_retried, 8u);
  (void)r.w.get(1);  // refused again
  r.w.run_to(milliseconds(1'520));
  EXPECT_EQ(r.w.counters().on_hit_retried, 10u) << "at once and 10 ms later";
  r.w.run_to(seconds(4));
  EXPECT_EQ(r.w.counters().on_hit_retried, 16u);
}

TEST(OnHitRetry, an_object_that_vanished_is_dropped) {
  Refused r;
  r.w.run_to(milliseconds(20));
  ASSERT_EQ(r.w.remove(1, true), Error::OK);
  r.room();
  r.w.run_to(seconds(5));
  EXPECT_EQ(r.w.counters().on_hit_retried, 3u);
  EXPECT_EQ(r.w.counters().on_hit_given_up, 0u);
  EXPECT_EQ(r.w.counters().on_hit_not_found, 1u);
}

TEST(OnHitRetry, candidates_are_bounded) {
  MasterSettings s = eager();
  s.retry_candidate_limit = 2;
  Refused r(s);
  r.w.on_ssd(1, 5);
  for (std::uint64_t k = 1; k < 6; ++k) (void)r.w.get(k);
  r.w.run_to(milliseconds(10));
  EXPECT_EQ(r.w.counters().on_hit_retried, 2u);
}

TEST(OnHitRetry, a_policy_without_retries_has_no_candidates) {
  Policy policy = on_hit_policy();
  policy.retry_candidates = false;
  MasterWorld w({.blocks = 1, .settings = eager(), .policy = policy});
  w.on_ssd(1);
  w.put(100);
  (void)w.get(1);
  EXPECT_EQ(w.counters().on_hit_watermark, 1u);
  ASSERT_EQ(w.remove(100), Error::OK);
  w.run_to(seconds(5));
  EXPECT_EQ(w.counters().on_hit_retried, 0u);
}

// -- the hand-out -------------------------------------------------------------------------------------------------

MasterSettings handing_out(std::int64_t limit) {
  MasterSettings s = eager();
  s.promotion_max_per_heartbeat = limit;
  return s;
}

TEST(Pull, hands_out_in_the_order_of_the_hits_each_task_once) {
  MasterWorld w(on_hit(handing_out(2)));
  w.on_ssd(1, 5);
  for (const std::uint64_t k : {3, 1, 5, 2, 4}) (void)w.get(k);
  EXPECT_EQ(w.pull(), (Keys{3, 1}));
  EXPECT_EQ(w.pull(), (Keys{5, 2}));
  EXPECT_EQ(w.pull(), (Keys{4}));
  EXPECT_EQ(w.pull(), Keys{});
  EXPECT_EQ(w.in_flight(), 5);
}

TEST(Pull, gives_each_holder_its_own) {
  MasterWorld w(on_hit(handing_out(10)));
  w.on_ssd(1, 1, kNode0);
  w.on_ssd(2, 1, kNode1);
  (void)w.get(1);
  (void)w.get(2);
  EXPECT_EQ(w.pull(kNode1), Keys{2});
  EXPECT_EQ(w.pull(kNode0), Keys{1});
  EXPECT_EQ(w.pull(kStranger), Keys{});
}

TEST(Pull, skips_tasks_that_ended_without_spending_the_limit_on_them) {
  MasterWorld w(on_hit(handing_out(1)));
  w.on_ssd(1, 2);
  (void)w.get(1);
  (void)w.get(2);
  ASSERT_EQ(w.remove(1, true), Error::OK);
  EXPECT_EQ(w.pull(), Keys{2});
}

TEST(Pull, each_task_has_a_ticket_of_its_own_that_its_calls_may_name) {
  MasterWorld w(on_hit(handing_out(1)));
  w.on_ssd(1);
  std::vector<PromotionTask> tasks;
  (void)w.get(1);
  w.master.pull_promotions(kNode0, w.now, tasks);
  ASSERT_EQ(w.fail(1, kNode0, tasks.at(0).ticket), Error::OK);
  (void)w.get(1);
  w.master.pull_promotions(kNode0, w.now, tasks);
  EXPECT_NE(tasks.at(0).ticket, tasks.at(1).ticket);
  EXPECT_EQ(w.allocate(1, kNode0, tasks.at(0).ticket), Error::REPLICA_IS_NOT_READY);
  EXPECT_EQ(w.allocate(1, kNode0, tasks.at(1).ticket), Error::OK);
}

}  // namespace
}  // namespace kvlift
