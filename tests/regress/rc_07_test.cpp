// RC-07: on-hit and prefetch both pick a key. One of them met REPLICA_IS_NOT_READY and counted a failure.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

MasterWorld::Setup both() {
  MasterWorld::Setup s;
  s.settings.promotion_on_hit = true;
  s.settings.promotion_admission_threshold = 1;
  return s;
}

TEST(RC07, a_prefetch_beside_a_task_of_on_hit_gets_an_answer_of_its_own) {
  MasterWorld w(both());
  w.on_ssd(1);
  (void)w.get(1);
  EXPECT_EQ(w.enrol(1), Error::PROMOTION_ALREADY_EXISTS);
  EXPECT_EQ(w.counters().prefetch_already, 1u);
  EXPECT_EQ(w.counters().promotion_failed, 0u);
  EXPECT_EQ(w.in_flight(), 1);
  ASSERT_EQ(w.pull().size(), 1u);
  EXPECT_EQ(w.allocate(1), Error::OK) << "the first one is not disturbed";
  EXPECT_EQ(w.commit(1), Error::OK);
}

TEST(RC07, a_hit_beside_a_task_of_prefetch_is_already_in_flight) {
  MasterWorld w(both());
  w.on_ssd(1);
  ASSERT_EQ(w.enrol(1), Error::OK);
  (void)w.get(1);
  EXPECT_EQ(w.counters().on_hit_in_flight, 1u);
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_TRUE(w.pull().empty());
  w.run_to(seconds(2));
  EXPECT_EQ(w.counters().on_hit_retried, 0u) << "and no back-off follows";
}

TEST(RC07, a_key_that_one_of_them_brought_exists_already_for_the_other) {
  MasterWorld w(both());
  w.on_ssd(1);
  ASSERT_EQ(w.promote(1), Error::OK);
  EXPECT_EQ(w.enrol(1), Error::PROMOTION_ALREADY_EXISTS);
}

}  // namespace
}  // namespace kvlift
