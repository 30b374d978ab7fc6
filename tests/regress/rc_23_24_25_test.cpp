// RC-23, RC-24, RC-25: whatever takes an object away while its task runs, the task ends once and frees its slot.
#include <functional>
#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

struct End {
  const char* name;
  bool allocated;
  std::function<void(MasterWorld&)> happens;  ///< to key 1, held by node 0
  std::uint64_t MasterCounters::*counted;
};

class TaskEnd : public testing::TestWithParam<End> {};

TEST_P(TaskEnd, takes_one_from_the_tasks_in_flight_exactly_once) {
  const End& end = GetParam();
  MasterWorld::Setup setup{.nodes = 2};
  setup.settings.client_ttl = seconds(3'600);
  MasterWorld w(setup);
  w.on_ssd(1, 1, kNode0);
  w.on_ssd(2, 1, kNode1);
  ASSERT_EQ(w.enrol(2, kNode1), Error::OK);  // a bystander
  ASSERT_EQ(w.enrol(1, kNode0), Error::OK);
  if (end.allocated) {
    ASSERT_EQ(w.allocate(1), Error::OK);
  }
  end.happens(w);
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_FALSE(w.master.has_promotion_task(key(1)));
  EXPECT_EQ(w.counters().*end.counted, 1u);
  // Whatever comes late finds nothing to end.
  EXPECT_NE(w.commit(1), Error::OK);
  EXPECT_EQ(w.fail(1), Error::OK);
  (void)w.remove(1, true);
  EXPECT_EQ(w.in_flight(), 1);
  w.run_to(seconds(1'300));
  EXPECT_EQ(w.in_flight(), 0) << "the bystander was reaped";
  EXPECT_EQ(w.counters().promotion_cancelled + w.counters().promotion_failed + w.counters().promotion_expired, 2u);
  EXPECT_EQ(w.used_blocks(), 0);
}

void remove_it(MasterWorld& w) { ASSERT_EQ(w.remove(1, true), Error::OK); }
void remove_all(MasterWorld& w) { ASSERT_GE(w.master.remove_all(TenantId::standard, w.now), 1); }

INSTANTIATE_TEST_SUITE_P(
    Table, TaskEnd,
    testing::Values(
        End{"forced_removal", false, remove_it, &MasterCounters::promotion_cancelled},
        End{"failure", false, [](MasterWorld& w) { ASSERT_EQ(w.fail(1), Error::OK); },
            &MasterCounters::promotion_failed},
        End{"failure_after_allocation", true, [](MasterWorld& w) { ASSERT_EQ(w.fail(1), Error::OK); },
            &MasterCounters::promotion_failed},
        End{"drain", false, [](MasterWorld& w) { ASSERT_EQ(w.master.drain_disk(kNode0, w.now), Error::OK); },
            &MasterCounters::promotion_cancelled},
        End{"drain_after_allocation", true,
            [](MasterWorld& w) { ASSERT_EQ(w.master.drain_disk(kNode0, w.now), Error::OK); },
            &MasterCounters::promotion_cancelled},
        End{"restart_of_the_holder", false, [](MasterWorld& w) { w.master.register_client(kNode0, 2, w.now); },
            &MasterCounters::promotion_cancelled},
        End{"restart_of_the_holder_after_allocation", true,
            [](MasterWorld& w) { w.master.register_client(kNode0, 2, w.now); }, &MasterCounters::promotion_cancelled}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(RC25, remove_all_ends_registered_tasks_and_leaves_allocated_ones) {
  MasterWorld w;
  w.on_ssd(1, 2);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.enrol(2), Error::OK);
  ASSERT_EQ(w.allocate(2), Error::OK);
  remove_all(w);
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.counters().promotion_cancelled, 1u);
  EXPECT_EQ(w.commit(2), Error::OK);
}

TEST(RC25, a_segment_that_goes_away_ends_the_tasks_staged_in_it_and_no_others) {
  MasterWorld w;
  w.on_ssd(1, 2);
  ASSERT_EQ(w.enrol(1), Error::OK);
  ASSERT_EQ(w.enrol(2), Error::OK);
  ASSERT_EQ(w.allocate(2), Error::OK);
  ASSERT_EQ(w.master.unmount_segment(SegmentId{0}, w.now), Error::OK);
  EXPECT_TRUE(w.master.has_promotion_task(key(1)));
  EXPECT_FALSE(w.master.has_promotion_task(key(2)));
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.counters().promotion_cancelled, 1u);
}

TEST(RC25, an_eviction_from_ssd_leaves_the_task_to_its_holder) {
  MasterWorld w;
  w.on_ssd(1, 2);
  for (const std::uint64_t k : {1, 2}) {
    ASSERT_EQ(w.enrol(k), Error::OK);
    ASSERT_EQ(w.allocate(k), Error::OK);
  }
  const std::vector<ObjectKey> gone{key(1), key(2)};
  ASSERT_EQ(w.master.evict_disk_replicas(kNode0, gone, w.now), Error::OK);
  EXPECT_EQ(w.in_flight(), 2);
  EXPECT_EQ(w.fail(1), Error::OK);  // its read failed
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.view(1).error, Error::OBJECT_NOT_FOUND);
  EXPECT_EQ(w.commit(2), Error::OK);  // its bytes had been read
  EXPECT_EQ(w.in_flight(), 0);
  EXPECT_TRUE(w.view(2).in_memory);
  EXPECT_FALSE(w.view(2).on_disk);
}

TEST(RC25, a_cap_of_one_survives_a_hundred_removals_under_a_task) {
  MasterWorld::Setup setup;
  setup.settings.promotion_queue_limit = 1;
  MasterWorld w(setup);
  for (int round = 0; round < 100; ++round) {
    w.on_ssd(1);
    ASSERT_EQ(w.enrol(1), Error::OK) << round;
    ASSERT_EQ(w.remove(1), Error::OK);
  }
  EXPECT_EQ(w.counters().promotion_cancelled, 100u);
}

// A size that does not match is refused; the slot is freed by the notice that follows.
TEST(RC24, an_allocation_with_a_size_of_nothing_is_refused_and_the_notice_frees_the_slot) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  for (const Bytes size : {Bytes{0}, Bytes{-1}})
    EXPECT_EQ(w.master.promotion_alloc_start(kNode0, key(1), size, w.now).error, Error::INVALID_PARAMS);
  ASSERT_EQ(w.fail(1), Error::OK);
  EXPECT_EQ(w.in_flight(), 0);
}

TEST(RC23, a_holder_that_dies_between_register_and_commit_blocks_its_key_for_its_own_ttl_at_most) {
  MasterWorld::Setup setup{.nodes = 2};
  setup.settings.client_ttl = seconds(10);
  MasterWorld w(setup);
  w.put(1);
  w.on_ssd(1, 1, kNode1);
  w.on_ssd(2, 1, kNode1);
  ASSERT_EQ(w.enrol(2, kNode1), Error::OK);
  for (int second = 1; second <= 11; ++second) {
    w.run_to(seconds(second));
    (void)w.master.ping(kNode0, w.now);
  }
  EXPECT_EQ(w.in_flight(), 0);
  w.join(kNode1, 2);
  w.on_ssd(2, 1, kNode1);
  EXPECT_EQ(w.enrol(2, kNode1), Error::OK);
}

}  // namespace
}  // namespace kvlift
