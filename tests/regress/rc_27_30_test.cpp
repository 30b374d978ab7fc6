// RC-27: notices from a stranger, or with a size that is not the task's, were accepted.
// RC-30: a promoted copy without a lease was the next victim of a full pool.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

TEST(RC27, what_a_stranger_says_changes_nothing) {
  MasterWorld w({.nodes = 2});
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  std::uint64_t hash = w.master.hash();
  EXPECT_EQ(w.allocate(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.fail(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.master.hash(), hash);
  ASSERT_EQ(w.allocate(1), Error::OK);
  hash = w.master.hash();
  EXPECT_EQ(w.commit(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.fail(1, kNode1), Error::INVALID_PARAMS);
  EXPECT_EQ(w.master.hash(), hash);
  EXPECT_EQ(w.commit(1), Error::OK);
}

TEST(RC27, a_size_that_is_not_the_tasks_is_refused_and_changes_nothing) {
  MasterWorld w;
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  const std::uint64_t hash = w.master.hash();
  for (const Bytes size : {kBlock - Bytes{1}, kBlock + Bytes{1}, kBlock * 2})
    EXPECT_EQ(w.master.promotion_alloc_start(kNode0, key(1), size, w.now).error, Error::INVALID_PARAMS);
  EXPECT_EQ(w.master.hash(), hash);
  EXPECT_EQ(w.allocate(1), Error::OK);
}

/// Promotes key 50 into a pool that lies above its watermark; is it there one cycle later?
bool survives(Policy::LeaseMoment moment) {
  MasterWorld::Setup setup{.blocks = 20};
  setup.settings.eviction_high_watermark_ratio = 0.8;
  setup.policy.lease = moment;
  MasterWorld w(setup);
  w.put_all(0, 19);
  w.on_ssd(0, 19);
  w.on_ssd(50);
  EXPECT_EQ(w.promote(50), Error::OK);
  w.run_to(milliseconds(10));
  EXPECT_GT(w.counters().objects_evicted, 0u);
  return w.view(50).in_memory;
}

TEST(RC30, a_promoted_copy_with_a_lease_outlives_the_next_cycle) {
  EXPECT_TRUE(survives(Policy::LeaseMoment::commit));
  EXPECT_FALSE(survives(Policy::LeaseMoment::none)) << "the control";
}

}  // namespace
}  // namespace kvlift
