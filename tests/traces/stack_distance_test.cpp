// Against the definition, done the slow way.
#include "traces/stack_distance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random.hpp"

namespace kvlift {
namespace {

/// Most recently used first.
class SlowStack {
 public:
  std::int64_t use(std::uint32_t thing) {
    const auto at = std::find(stack_.begin(), stack_.end(), thing);
    const std::int64_t distance = at == stack_.end() ? StackDistances::kFirstUse : at - stack_.begin();
    if (at != stack_.end()) stack_.erase(at);
    stack_.insert(stack_.begin(), thing);
    return distance;
  }

 private:
  std::vector<std::uint32_t> stack_;
};

TEST(StackDistances, AThingUsedAgainAtOnceIsAtZero) {
  StackDistances distances;
  EXPECT_EQ(distances.use(0), StackDistances::kFirstUse);
  EXPECT_EQ(distances.use(0), 0);
}

TEST(StackDistances, OthersCountOnceHoweverOftenTheyWereUsed) {
  StackDistances distances;
  for (const std::uint32_t thing : {0U, 1U, 2U, 1U, 2U, 1U}) distances.use(thing);
  EXPECT_EQ(distances.use(0), 2);
}

TEST(StackDistances, AgreeWithTheDefinitionWhileSlotsAreNumberedAnew) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    StackDistances distances;
    SlowStack slow;
    std::uint32_t things = 0;
    for (int i = 0; i < 20'000; ++i) {
      const bool is_new = things == 0 || (things < 700 && random.chance(1, 10));
      const auto thing = is_new ? things++ : static_cast<std::uint32_t>(random.below(things));
      ASSERT_EQ(distances.use(thing), slow.use(thing)) << "seed " << seed << " use " << i;
    }
  }
}

}  // namespace
}  // namespace kvlift
