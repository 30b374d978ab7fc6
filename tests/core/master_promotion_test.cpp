// Registration, allocation and the ends of promotion tasks: which check answers first, and what stays behind.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;

MasterSettings capped(std::int64_t limit) {
  MasterSettings s = quiet_settings();
  s.promotion_queue_limit = limit;
  return s;
}

// -- register_prefetch_task ---------------------------------------------------------------------------------------

/// Each case breaks the named check and every later one that can be broken with it. Key 1 is the one asked for.
struct Refusal {
  const char* name;
  std::function<void(MasterWorld&)> prepare;
  NodeId caller;
  Error answer;
};

void fill_cap(MasterWorld& w) {
  w.on_ssd(99);
  ASSERT_EQ(w.enrol(99), Error::OK);
}

class RegisterOrder : public testing::TestWithParam<Refusal> {};

TEST_P(RegisterOrder, the_first_check_that_fails_answers_and_no_task_is_left) {
  MasterWorld w({.nodes = 2, .settings = capped(1)});
  GetParam().prepare(w);
  const bool task_before = w.master.has_promotion_task(key(1));
  EXPECT_EQ(w.enrol(1, GetParam().caller), GetParam().answer);
  EXPECT_EQ(w.master.has_promotion_task(key(1)), task_before);
}

INSTANTIATE_TEST_SUITE_P(Table, RegisterOrder,
                         testing::Values(Refusal{"not_serving_before_not_found",
                                                 [](MasterWorld& w) { w.master.set_serving(false); }, kStranger,
                                                 Error::UNAVAILABLE_IN_CURRENT_STATUS},
                                         Refusal{"not_found_before_holder_and_cap", [](MasterWorld& w) { fill_cap(w); },
                                                 kStranger, Error::OBJECT_NOT_FOUND},
                                         Refusal{"running_put_before_replica_present",
                                                 [](MasterWorld& w) {
                                                   fill_cap(w);
                                                   ASSERT_TRUE(w.start_put(1).ok());
                                                 },
                                                 kStranger, Error::REPLICA_IS_NOT_READY},
                                         Refusal{"memory_before_missing_source",
                                                 [](MasterWorld& w) {
                                                   fill_cap(w);
                                                   w.put(1);
                                                 },
                                                 kStranger, Error::PROMOTION_ALREADY_EXISTS},
                                         Refusal{"task_before_holder_and_cap",
                                                 [](MasterWorld& w) {
                                                   w.on_ssd(1);
                                                   ASSERT_EQ(w.enrol(1), Error::OK);
                                                 },
                                                 kStranger, Error::PROMOTION_ALREADY_EXISTS},
                                         Refusal{"staged_replica_counts_as_memory",
                                                 [](MasterWorld& w) {
                                                   w.on_ssd(1);
                                                   ASSERT_EQ(w.enrol(1), Error::OK);
                                                   ASSERT_EQ(w.allocate(1), Error::OK);
                                                 },
                                                 kStranger, Error::PROMOTION_ALREADY_EXISTS},
                                         Refusal{"holder_before_cap",
                                                 [](MasterWorld& w) {
                                                   fill_cap(w);
                                                   w.on_ssd(1);
                                                 },
                                                 kNode1, Error::INVALID_PARAMS},
                                         Refusal{"cap_last",
                                                 [](MasterWorld& w) {
                                                   fill_cap(w);
                                                   w.on_ssd(1);
                                                 },
                                                 kNode0, Error::KEYS_ULTRA_LIMIT}),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Register, an_object_whose_ssd_copy_left_under_its_task_has_no_source_once_the_task_is_gone) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  const std::vector<ObjectKey> gone{key(1)};
  ASSERT_EQ(w.master.evict_disk_replicas(kNode0, gone, w.now), Error::OK);
  EXPECT_EQ(w.enrol(1), Error::PROMOTION_ALREADY_EXISTS) << "the task answers before the missing source";
  ASSERT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.enrol(1), Error::OBJECT_NOT_FOUND) << "nothing of the object was left";
}

TEST(Register, every_refusal_is_counted_by_its_reason) {
  MasterWorld w({.nodes = 2, .settings = capped(1)});
  w.on_ssd(1, 2);
  w.put(3);
  ASSERT_TRUE(w.start_put(4).ok());
  (void)w.enrol(50);
  (void)w.enrol(4);
  (void)w.enrol(3);
  (void)w.enrol(1, kNode1);
  (void)w.enrol(1);
  (void)w.enrol(2);
  w.master.set_serving(false);
  (void)w.enrol(1);
  const MasterCounters& n = w.counters();
  EXPECT_EQ(n.prefetch_not_found, 1u);
  EXPECT_EQ(n.prefetch_put_running, 1u);
  EXPECT_EQ(n.prefetch_already, 1u);
  EXPECT_EQ(n.prefetch_not_holder, 1u);
  EXPECT_EQ(n.prefetch_registered, 1u);
  EXPECT_EQ(n.prefetch_cap, 1u);
  EXPECT_EQ(n.prefetch_unavailable, 1u);
}

TEST(Register, looks_neither_at_the_sketch_nor_at_the_watermark_nor_at_the_mailbox) {
  MasterWorld w({.blocks = 10});
  w.on_ssd(1);
  w.put_all(10, 10);  // full
  EXPECT_EQ(w.enrol(1), Error::OK);
  EXPECT_TRUE(w.pull().empty()) << "the caller itself executes the task";
}

// -- the RFC's unit semantics -------------------------------------------------------------------------------------

TEST(RegisterSemantics, a_key_is_registered_once) {
  MasterWorld w;
  w.on_ssd(1);
  EXPECT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.enrol(1), Error::PROMOTION_ALREADY_EXISTS);
  EXPECT_EQ(w.in_flight(), 1);
}

TEST(RegisterSemantics, a_missing_object_is_not_found) {
  MasterWorld w;
  EXPECT_EQ(w.enrol(1), Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.master.object_count(), 0);
}

TEST(RegisterSemantics, only_the_holder_may_register_and_a_refusal_leaves_no_task) {
  MasterWorld w({.nodes = 2});
  w.on_ssd(1);
  EXPECT_EQ(w.enrol(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_FALSE(w.master.has_promotion_task(key(1)));
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.enrol(1, kNode0), Error::OK) << "the refusal blocks nobody";
}

TEST(RegisterSemantics, an_object_in_memory_exists_already) {
  MasterWorld w;
  w.put(1);
  w.on_ssd(1);
  EXPECT_EQ(w.enrol(1), Error::PROMOTION_ALREADY_EXISTS);
  EXPECT_FALSE(w.master.has_promotion_task(key(1)));
}

TEST(RegisterSemantics, after_the_commit_the_lease_lives_and_the_replica_is_visible) {
  MasterWorld w;
  w.on_ssd(1);
  w.advance(seconds(100));
  ASSERT_EQ(w.promote(1), Error::OK);
  EXPECT_EQ(w.lease(1), w.now + seconds(10));
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_TRUE(w.view(1).on_disk);
  EXPECT_EQ(w.in_flight(), 0);
}

// -- promotion_alloc_start ----------------------------------------------------------------------------------------

struct AllocationRefusal {
  const char* name;
  std::function<void(MasterWorld&)> prepare;
  NodeId caller;
  Bytes size;
  PromotionTicket ticket;
  Error answer;
};

constexpr PromotionTicket kOld{1};
constexpr PromotionTicket kNew{2};

class AllocationOrder : public testing::TestWithParam<AllocationRefusal> {};

TEST_P(AllocationOrder, the_first_check_that_fails_answers_and_takes_no_room) {
  const AllocationRefusal& f = GetParam();
  MasterWorld w({.blocks = 4, .nodes = 2});
  f.prepare(w);
  const std::int64_t used = w.used_blocks();
  EXPECT_EQ(w.master.promotion_alloc_start(f.caller, key(1), f.size, w.now, f.ticket).error, f.answer);
  EXPECT_EQ(w.used_blocks(), used);
}

void registered(MasterWorld& w) {
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1, kNode0, kNew), Error::OK);
}

INSTANTIATE_TEST_SUITE_P(
    Table, AllocationOrder,
    testing::Values(
        AllocationRefusal{"absent_object", [](MasterWorld&) {}, kStranger, {1}, kOld, Error::OBJECT_NOT_FOUND},
        AllocationRefusal{"running_put_before_absent_task",
                          [](MasterWorld& w) { ASSERT_TRUE(w.start_put(1).ok()); },
                          kStranger,
                          {1},
                          kOld,
                          Error::REPLICA_IS_NOT_READY},
        AllocationRefusal{"absent_task_before_holder_and_size",
                          [](MasterWorld& w) { w.on_ssd(1); },
                          kStranger,
                          {1},
                          kOld,
                          Error::REPLICA_IS_NOT_READY},
        AllocationRefusal{"task_of_another_ticket_is_absent", registered, kNode0, kBlock, kOld,
                          Error::REPLICA_IS_NOT_READY},
        AllocationRefusal{"wrong_holder_before_wrong_size", registered, kNode1, {1}, kNew, Error::INVALID_PARAMS},
        AllocationRefusal{"wrong_size_before_allocated_twice",
                          [](MasterWorld& w) {
                            registered(w);
                            ASSERT_EQ(w.allocate(1), Error::OK);
                          },
                          kNode0,
                          {1},
                          kNew,
                          Error::INVALID_PARAMS},
        AllocationRefusal{"allocated_twice_before_no_room",
                          [](MasterWorld& w) {
                            registered(w);
                            ASSERT_EQ(w.allocate(1), Error::OK);
                            w.put_all(10, 7);
                          },
                          kNode0, kBlock, kNew, Error::REPLICA_IS_NOT_READY},
        AllocationRefusal{"no_room_last",
                          [](MasterWorld& w) {
                            registered(w);
                            w.put_all(10, 8);
                          },
                          kNode0, kBlock, kNew, Error::NO_AVAILABLE_HANDLE}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(AllocationStart, the_staged_replica_is_invisible_until_the_commit) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.allocate(1), Error::OK);
  EXPECT_FALSE(w.view(1).in_memory);
  EXPECT_EQ(w.used_blocks(), 1);
  ASSERT_EQ(w.commit(1), Error::OK);
  EXPECT_TRUE(w.view(1).in_memory);
}

TEST(AllocationStart, a_refused_task_stays_and_may_try_again_when_there_is_room) {
  MasterWorld w({.blocks = 2});
  w.on_ssd(1);
  w.put_all(10, 2);
  ASSERT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.allocate(1), Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(w.in_flight(), 1);
  ASSERT_EQ(w.remove(10), Error::OK);
  EXPECT_EQ(w.allocate(1), Error::OK);
}

// -- the ends -----------------------------------------------------------------------------------------------------

TEST(PromotionEnd, success_checks_object_then_task_then_holder) {
  MasterWorld w({.nodes = 2});
  EXPECT_EQ(w.commit(1, kNode1), Error::OBJECT_NOT_FOUND);
  w.on_ssd(1);
  EXPECT_EQ(w.commit(1, kNode1), Error::REPLICA_IS_NOT_READY) << "no task";
  ASSERT_EQ(w.enrol(1), Error::OK);
  EXPECT_EQ(w.commit(1, kNode1), Error::REPLICA_IS_NOT_READY) << "nothing allocated";
  ASSERT_EQ(w.allocate(1), Error::OK);
  EXPECT_EQ(w.commit(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.commit(1), Error::OK);
  EXPECT_EQ(w.commit(1), Error::REPLICA_IS_NOT_READY) << "a second notice finds no task";
  EXPECT_EQ(w.counters().promotion_committed, 1u);
}

TEST(PromotionEnd, failure_is_idempotent_and_only_the_holders) {
  MasterWorld w({.nodes = 2});
  EXPECT_EQ(w.fail(1), Error::OK) << "absent object";
  w.on_ssd(1);
  EXPECT_EQ(w.fail(1), Error::OK) << "no task";
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.allocate(1), Error::OK);
  EXPECT_EQ(w.fail(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.counters().promotion_failed, 1u);
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.used_blocks(), 0) << "its writer is done: the room is free at once";
  EXPECT_TRUE(w.view(1).on_disk);
}

TEST(PromotionEnd, after_a_failure_the_key_may_be_registered_again_at_once) {
  MasterWorld w;
  w.on_ssd(1);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(w.enrol(1), Error::OK);
    ASSERT_EQ(w.fail(1), Error::OK);
  }
  EXPECT_EQ(w.promote(1), Error::OK);
}

TEST(PromotionEnd, a_late_end_of_an_older_task_does_not_touch_the_newer_one) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1, kNode0, kOld), Error::OK);
  ASSERT_EQ(w.allocate(1, kNode0, kOld), Error::OK);
  ASSERT_EQ(w.fail(1, kNode0, kOld), Error::OK);
  ASSERT_EQ(w.enrol(1, kNode0, kNew), Error::OK);
  ASSERT_EQ(w.allocate(1, kNode0, kNew), Error::OK);
  EXPECT_EQ(w.commit(1, kNode0, kOld), Error::REPLICA_IS_NOT_READY) << "its bytes are elsewhere";
  EXPECT_FALSE(w.view(1).in_memory);
  EXPECT_EQ(w.fail(1, kNode0, kOld), Error::OK);
  EXPECT_TRUE(w.master.has_promotion_task(key(1)));
  EXPECT_EQ(w.commit(1, kNode0, kNew), Error::OK);
}

TEST(PromotionEnd, a_commit_whose_segment_went_away_is_refused_and_the_task_ended_with_the_segment) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.allocate(1), Error::OK);
  ASSERT_EQ(w.master.unmount_segment(SegmentId{0}, w.now), Error::OK);
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_EQ(w.counters().promotion_cancelled, 1u);
  EXPECT_EQ(w.commit(1), Error::REPLICA_IS_NOT_READY);
  EXPECT_TRUE(w.view(1).on_disk);
}

TEST(PromotionEnd, the_cap_is_free_again_after_every_kind_of_end) {
  MasterWorld w({.settings = capped(1)});
  w.on_ssd(1, 4);
  ASSERT_EQ(w.promote(1), Error::OK);
  ASSERT_EQ(w.enrol(2), Error::OK);
  ASSERT_EQ(w.fail(2), Error::OK);
  ASSERT_EQ(w.enrol(3), Error::OK);
  ASSERT_EQ(w.remove(3), Error::OK);
  EXPECT_EQ(w.enrol(4), Error::OK);
}

}  // namespace
}  // namespace kvlift
