// RC-68: a put that had ended stayed in the set of running puts, and every prefetch of its key was refused.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

/// Put, saved to SSD, evicted from memory; then 90 s of rest.
void settled(MasterWorld& w) {
  w.put(1);
  w.on_ssd(1);
  ASSERT_EQ(w.start_put(2, {}, w.capacity).error, Error::NO_AVAILABLE_HANDLE);  // asks for eviction
  w.run_to(seconds(90));
  ASSERT_FALSE(w.view(1).in_memory);
  ASSERT_TRUE(w.view(1).on_disk);
}

TEST(RC68, a_put_that_ended_does_not_stand_in_the_way_of_a_prefetch) {
  MasterWorld w;
  settled(w);
  EXPECT_EQ(w.promote(1), Error::OK);
  EXPECT_EQ(w.counters().prefetch_put_running, 0u);
}

TEST(RC68, the_original_refuses_until_the_reaper_and_the_refusals_are_counted_by_reason) {
  MasterWorld w({.legacy = {.stuck_running_puts = true}});
  settled(w);
  EXPECT_EQ(w.enrol(1), Error::REPLICA_IS_NOT_READY);
  w.run_to(seconds(600) - nanoseconds(1));
  EXPECT_EQ(w.enrol(1), Error::REPLICA_IS_NOT_READY);
  EXPECT_EQ(w.counters().prefetch_put_running, 2u);
  w.run_to(seconds(600));
  EXPECT_EQ(w.promote(1), Error::OK);
}

TEST(RC68, after_a_restart_the_original_has_forgotten_its_stuck_puts) {
  MasterWorld w({.legacy = {.stuck_running_puts = true}});
  settled(w);
  w.master.restart(true, w.now);
  EXPECT_EQ(w.promote(1), Error::OK);
}

}  // namespace
}  // namespace kvlift
