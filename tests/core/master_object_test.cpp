// Put, upsert and remove: which check answers first, whose end counts, what an aborted write leaves.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;

// -- put_start ----------------------------------------------------------------------------------------------------

TEST(PutStart, checks_serving_then_parameters_then_existence_then_room) {
  MasterWorld w({.blocks = 1});
  w.put(1);
  EXPECT_EQ(w.start_put(1, {}, {0}).error, Error::INVALID_PARAMS) << "before existence";
  EXPECT_EQ(w.start_put(2, {}, {-1}).error, Error::INVALID_PARAMS);
  EXPECT_EQ(w.start_put(2, {.replica_num = -1}).error, Error::INVALID_PARAMS);
  EXPECT_EQ(w.start_put(1).error, Error::OBJECT_ALREADY_EXISTS) << "before room";
  EXPECT_EQ(w.start_put(2).error, Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(w.master.object_count(), 1) << "a refused put leaves no object";
  w.master.set_serving(false);
  EXPECT_EQ(w.start_put(1, {}, {0}).error, Error::UNAVAILABLE_IN_CURRENT_STATUS);
}

TEST(PutStart, an_object_on_ssd_only_exists_and_is_not_brought_to_memory) {
  MasterWorld w;
  w.on_ssd(1);
  EXPECT_EQ(w.start_put(1).error, Error::OBJECT_ALREADY_EXISTS);
  EXPECT_FALSE(w.view(1).in_memory);
  EXPECT_EQ(w.counters().put_refused_exists, 1u);
}

TEST(PutStart, a_running_put_is_in_the_way_for_less_than_thirty_seconds) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  w.now = at(seconds(30) - nanoseconds(1));
  EXPECT_EQ(w.start_put(1).error, Error::OBJECT_ALREADY_EXISTS);
  w.now = at(seconds(30));
  EXPECT_TRUE(w.start_put(1).ok());
}

TEST(PutStart, the_room_of_a_replaced_put_is_free_when_600_s_have_passed_since_that_put_began) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  w.run_to(seconds(100));
  w.put(1);
  EXPECT_EQ(w.used_blocks(), 2) << "its writer may still be writing";
  w.run_to(seconds(600) - nanoseconds(1));
  EXPECT_EQ(w.used_blocks(), 2);
  w.run_to(seconds(600));
  EXPECT_EQ(w.used_blocks(), 1);
  EXPECT_TRUE(w.view(1).in_memory);
}

TEST(PutStart, a_put_that_replaces_another_belongs_to_the_group_it_names) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1, {.group = GroupId{1}}).ok());
  w.advance(seconds(30));
  w.put(1, {.group = GroupId{2}});
  w.put(2, {.group = GroupId{1}});
  w.put(3, {.group = GroupId{2}});
  w.advance(seconds(30));
  (void)w.get(1);
  EXPECT_LT(w.lease(2), w.now);
  EXPECT_GT(w.lease(3), w.now);
}

TEST(PutStart, replicas_go_to_segments_of_their_own) {
  MasterWorld w({.blocks = 4, .nodes = 2});
  for (std::uint64_t k = 0; k < 3; ++k) {
    const auto placed = w.start_put(k, {.replica_num = 2});
    ASSERT_TRUE(placed.ok());
    EXPECT_NE(placed.value[0].segment, placed.value[1].segment);
  }
}

// -- put_end and put_revoke ---------------------------------------------------------------------------------------

TEST(PutEnd, is_the_writers_only) {
  MasterWorld w({.nodes = 2});
  EXPECT_EQ(w.end_put(1), Error::OBJECT_NOT_FOUND);
  ASSERT_TRUE(w.start_put(1).ok());
  EXPECT_EQ(w.master.put_end(kNode1, key(1), w.now), Error::ILLEGAL_CLIENT);
  EXPECT_EQ(w.master.put_revoke(kNode1, key(1), w.now), Error::ILLEGAL_CLIENT);
  EXPECT_EQ(w.end_put(1), Error::OK);
}

TEST(PutEnd, said_twice_is_true_twice_while_all_replicas_are_complete) {
  MasterWorld w;
  w.put(1);
  EXPECT_EQ(w.end_put(1), Error::OK);
  EXPECT_EQ(w.counters().put_ended, 1u);
  EXPECT_EQ(w.master.put_revoke(kNode0, key(1), w.now), Error::INVALID_WRITE);
}

TEST(PutEnd, a_late_end_of_a_replaced_put_ends_nothing) {
  MasterWorld w;
  const auto old = w.start_put(1);
  w.advance(seconds(30));
  const auto young = w.start_put(1);
  ASSERT_TRUE(old.ok() && young.ok());
  EXPECT_EQ(w.end_put(1, old.value[0].version), Error::INVALID_WRITE);
  EXPECT_EQ(w.master.put_revoke(kNode0, key(1), w.now, old.value[0].version), Error::INVALID_WRITE);
  EXPECT_EQ(w.view(1).error, Error::REPLICA_IS_NOT_READY);
  EXPECT_EQ(w.end_put(1, young.value[0].version), Error::OK);
}

TEST(PutEnd, a_write_whose_segment_went_away_is_invalid) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  ASSERT_EQ(w.master.unmount_segment(SegmentId{0}, w.now), Error::OK);
  EXPECT_EQ(w.end_put(1), Error::INVALID_WRITE);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
}

TEST(PutRevoke, frees_the_room_at_once_and_the_object_is_gone) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  EXPECT_EQ(w.master.put_revoke(kNode0, key(1), w.now), Error::OK);
  EXPECT_EQ(w.used_blocks(), 0);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.master.put_revoke(kNode0, key(1), w.now), Error::OBJECT_NOT_FOUND);
}

// -- the reaper on puts -------------------------------------------------------------------------------------------

TEST(PutReaper, drops_a_put_at_exactly_its_release_timeout) {
  MasterWorld w;
  w.now = at_ms(7);
  ASSERT_TRUE(w.start_put(1).ok());
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(600'010)) << "the next point of the grid";
  w.now = at_ms(600'006);
  w.tick();
  EXPECT_EQ(w.view(1).error, Error::REPLICA_IS_NOT_READY);
  w.now = at_ms(600'007);
  w.tick();
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.used_blocks(), 0);
  EXPECT_EQ(w.counters().puts_reaped, 1u);
}

TEST(PutReaper, leaves_a_younger_put_of_the_same_key_alone) {
  MasterWorld w;
  ASSERT_TRUE(w.start_put(1).ok());
  w.now = at(seconds(300));
  const auto young = w.start_put(1);
  ASSERT_TRUE(young.ok());
  w.run_to(seconds(899));
  EXPECT_EQ(w.end_put(1, young.value[0].version), Error::OK);
  EXPECT_EQ(w.counters().puts_reaped, 0u);
}

TEST(PutReaper, leaves_a_put_that_ended_alone) {
  MasterWorld w;
  w.put(1);
  w.run_to(seconds(700));
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_EQ(w.counters().puts_reaped, 0u);
}

// -- upsert -------------------------------------------------------------------------------------------------------

struct UpsertRow {
  const char* name;
  std::function<void(MasterWorld&)> prepare;
  GroupId group;
  Error answer;
};

class UpsertOrder : public testing::TestWithParam<UpsertRow> {};

TEST_P(UpsertOrder, the_first_check_that_fails_answers) {
  MasterSettings s = quiet_settings();
  s.enable_offload = true;
  MasterWorld w({.settings = s});
  GetParam().prepare(w);
  const auto answer = w.master.upsert_start(kNode0, key(1), kBlock, {.group = GetParam().group}, w.now);
  EXPECT_EQ(answer.error, GetParam().answer);
}

INSTANTIATE_TEST_SUITE_P(Table, UpsertOrder,
                         testing::Values(UpsertRow{"absent_is_a_put", [](MasterWorld&) {}, GroupId::none, Error::OK},
                                         UpsertRow{"group_before_promotion",
                                                   [](MasterWorld& w) {
                                                     w.on_ssd(1);
                                                     ASSERT_EQ(w.enrol(1), Error::OK);
                                                   },
                                                   GroupId{9}, Error::INVALID_PARAMS},
                                         UpsertRow{"a_promotion_blocks",
                                                   [](MasterWorld& w) {
                                                     w.on_ssd(1);
                                                     ASSERT_EQ(w.enrol(1), Error::OK);
                                                   },
                                                   GroupId::none, Error::OBJECT_HAS_REPLICATION_TASK},
                                         UpsertRow{"a_queued_offload_is_cancelled", [](MasterWorld& w) { w.put(1); },
                                                   GroupId::none, Error::OK},
                                         UpsertRow{"a_started_offload_blocks",
                                                   [](MasterWorld& w) {
                                                     w.put(1);
                                                     ASSERT_EQ(w.pull_offloads().size(), 1u);
                                                   },
                                                   GroupId::none, Error::OBJECT_HAS_REPLICATION_TASK},
                                         UpsertRow{"a_running_put_is_replaced_without_delay",
                                                   [](MasterWorld& w) { ASSERT_TRUE(w.start_put(1).ok()); },
                                                   GroupId::none, Error::OK}),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Upsert, the_key_is_unreadable_until_its_end_and_the_ssd_copy_of_the_old_version_is_gone) {
  MasterWorld w;
  w.put(1);
  w.on_ssd(1);
  ASSERT_TRUE(w.master.upsert_start(kNode0, key(1), kBlock, {}, w.now).ok());
  EXPECT_EQ(w.view(1).error, Error::REPLICA_IS_NOT_READY);
  ASSERT_EQ(w.master.upsert_end(kNode0, key(1), w.now), Error::OK);
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_FALSE(w.view(1).on_disk);
}

TEST(Upsert, readers_under_lease_keep_their_bytes_until_the_lease_ends) {
  MasterWorld w;
  w.put(1);
  const Allocation old = w.get(1).memory;
  const auto placed = w.master.upsert_start(kNode0, key(1), kBlock, {}, w.now);
  ASSERT_TRUE(placed.ok());
  EXPECT_NE(placed.value[0].offset, old.offset);
  w.run_to(seconds(9));
  EXPECT_EQ(w.used_blocks(), 2);
  w.run_to(seconds(10));
  EXPECT_EQ(w.used_blocks(), 1);
}

TEST(Upsert, a_cancelled_offload_is_not_handed_out) {
  MasterSettings s = quiet_settings();
  s.enable_offload = true;
  MasterWorld w({.settings = s});
  w.put(1);
  const auto placed = w.master.upsert_start(kNode0, key(1), kBlock, {}, w.now);
  ASSERT_TRUE(placed.ok());
  EXPECT_TRUE(w.pull_offloads().empty());
  ASSERT_EQ(w.master.upsert_end(kNode0, key(1), w.now), Error::OK);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].version, placed.value[0].version);
}

// -- remove -------------------------------------------------------------------------------------------------------

TEST(Remove, checks_lease_then_completeness_and_force_overrides_the_lease_only) {
  MasterWorld w;
  EXPECT_EQ(w.remove(1), Error::OBJECT_NOT_FOUND);
  w.on_ssd(1);
  (void)w.get(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.allocate(1), Error::OK);
  EXPECT_EQ(w.remove(1), Error::OBJECT_HAS_LEASE) << "before the incomplete replica";
  EXPECT_EQ(w.remove(1, true), Error::REPLICA_IS_NOT_READY) << "also with force";
  ASSERT_EQ(w.commit(1), Error::OK);
  EXPECT_EQ(w.remove(1, true), Error::OK);
  w.master.set_serving(false);
  EXPECT_EQ(w.remove(1), Error::UNAVAILABLE_IN_CURRENT_STATUS);
}

TEST(Remove, is_possible_at_the_instant_the_lease_ends) {
  MasterWorld w;
  w.put(1);
  (void)w.get(1);
  w.now = at(seconds(10) - nanoseconds(1));
  EXPECT_EQ(w.remove(1), Error::OBJECT_HAS_LEASE);
  w.now = at(seconds(10));
  EXPECT_EQ(w.remove(1), Error::OK);
}

TEST(Remove, of_everything_takes_what_is_free_of_one_tenant) {
  MasterWorld w;
  w.put_all(0, 4);
  (void)w.get(1);
  ASSERT_TRUE(w.start_put(7).ok());
  ObjectKey foreign = key(2);
  foreign.tenant = TenantId{1};
  ASSERT_TRUE(w.master.put_start(kNode0, foreign, kBlock, {}, w.now).ok());
  ASSERT_EQ(w.master.put_end(kNode0, foreign, w.now), Error::OK);
  EXPECT_EQ(w.master.remove_all(TenantId::standard, w.now), 3);
  EXPECT_TRUE(w.view(1).in_memory);
  EXPECT_TRUE(w.master.query_read_only(kNode0, foreign).in_memory);
  EXPECT_EQ(w.master.object_count(), 3);
}

TEST(Remove, ends_the_offload_of_the_object) {
  MasterSettings s = quiet_settings();
  s.enable_offload = true;
  MasterWorld w({.settings = s});
  w.put(1);
  ASSERT_EQ(w.remove(1), Error::OK);
  EXPECT_TRUE(w.pull_offloads().empty());
  EXPECT_EQ(w.used_blocks(), 0);
}

}  // namespace
}  // namespace kvlift
