#include "core/random.hpp"

#include <gtest/gtest.h>

#include <array>

namespace kvlift {
namespace {

TEST(Random, a_seed_gives_the_published_stream_everywhere) {
  Random random(0);  // first draws of SplitMix64 from 0
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4ULL);
}

TEST(Random, a_bound_holds_and_zero_gives_zero) {
  Random random(1);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10'000; ++i) ++seen.at(random.below(10));
  for (const int n : seen) EXPECT_NEAR(n, 1'000, 150);
}

TEST(Random, chance_is_never_and_always_at_its_ends) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(random.chance(0, 10));
    EXPECT_TRUE(random.chance(10, 10));
  }
}

TEST(Random, a_fork_is_not_shifted_by_what_its_parent_draws_later) {
  Random a(3), b(3);
  Random fork_a = a.fork(1), fork_b = b.fork(1);
  (void)a.next();
  EXPECT_EQ(fork_a.next(), fork_b.next());
  Random c(3);
  EXPECT_NE(c.fork(2).next(), Random(3).fork(1).next());
}

TEST(Random, a_copy_copies_the_stream) {
  Random a(4);
  Random b = a;
  EXPECT_EQ(a.next(), b.next());
}

}  // namespace
}  // namespace kvlift
