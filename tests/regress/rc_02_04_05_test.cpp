// RC-02, RC-04, RC-05: how many tasks a holder is handed at once, and what becomes of a hit that was refused.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

MasterWorld::Setup with_limit(std::int64_t limit) {
  MasterWorld::Setup s{.blocks = 2'000, .policy = on_hit_policy()};
  s.settings.promotion_admission_threshold = 1;
  s.settings.promotion_max_per_heartbeat = limit;
  return s;
}

std::size_t handed_out(std::int64_t limit) {
  MasterWorld w(with_limit(limit));
  w.on_ssd(0, 1'500);
  for (std::uint64_t k = 0; k < 1'500; ++k) (void)w.get(k);
  EXPECT_EQ(w.in_flight(), 1'500);
  return w.pull().size();
}

TEST(RC02, a_thousand_waiting_tasks_are_not_handed_out_at_once) { EXPECT_EQ(handed_out(1), 1u); }

TEST(RC02, a_holder_that_is_behind_with_its_tasks_stays_alive_by_its_pings) {
  MasterWorld::Setup setup = with_limit(1);
  setup.settings.client_ttl = seconds(10);
  MasterWorld w(setup);
  w.on_ssd(0, 1'000);
  for (std::uint64_t k = 0; k < 1'000; ++k) (void)w.get(k);
  for (int second = 1; second <= 60; ++second) {
    w.run_to(seconds(second));
    ASSERT_TRUE(w.master.ping(kNode0, w.now));
  }
  EXPECT_EQ(w.counters().clients_expired, 0u);
}

TEST(RC04, a_limit_of_zero_is_one) { EXPECT_EQ(handed_out(0), 1u); }
TEST(RC04, a_negative_limit_is_one) { EXPECT_EQ(handed_out(-5), 1u); }
TEST(RC04, a_huge_limit_is_1024) { EXPECT_EQ(handed_out(std::int64_t{1} << 40), 1'024u); }

TEST(RC05, a_hit_refused_under_pressure_is_promoted_when_the_pressure_ends_without_another_get) {
  MasterWorld::Setup setup = with_limit(1);
  setup.blocks = 10;
  MasterWorld w(setup);
  w.put_all(100, 10);
  w.on_ssd(1);
  (void)w.probe(100, 10);  // under lease: eviction cannot help
  (void)w.get(1);
  w.run_to(milliseconds(500));
  EXPECT_EQ(w.in_flight(), 0);
  for (std::uint64_t k = 100; k < 105; ++k) ASSERT_EQ(w.remove(k, true), Error::OK);
  w.run_to(seconds(3));
  EXPECT_EQ(w.in_flight(), 1);
  EXPECT_EQ(w.pull(), std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace kvlift
