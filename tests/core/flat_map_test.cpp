#include "core/flat_map.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/random.hpp"

namespace kvlift {
namespace {

ObjectKey key_of(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }

TEST(FlatMap, DoesWhatAMapDoesOverRandomInsertionsAndErasures) {
  FlatMap<std::uint64_t> flat;
  std::map<ObjectKey, std::uint64_t> model;
  Random random(7);
  for (std::uint64_t step = 0; step < 200'000; ++step) {
    const ObjectKey key = key_of(random.below(3'000));
    if (random.chance(1, 2)) {
      EXPECT_EQ(flat.emplace(key, step), model.emplace(key, step).second);
    } else {
      EXPECT_EQ(flat.erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(flat.size(), model.size());
  }
  for (std::uint64_t n = 0; n < 3'000; ++n) {
    const auto expected = model.find(key_of(n));
    const std::uint64_t* found = flat.find(key_of(n));
    ASSERT_EQ(found != nullptr, expected != model.end()) << n;
    if (found != nullptr) {
      EXPECT_EQ(*found, expected->second);
    }
  }
}

TEST(FlatMap, TellsTenantsApart) {
  FlatMap<int> flat;
  EXPECT_TRUE(flat.emplace({.key = {0, 1}, .tenant = TenantId{1}}, 1));
  EXPECT_TRUE(flat.emplace({.key = {0, 1}, .tenant = TenantId{2}}, 2));
  EXPECT_EQ(*flat.find({.key = {0, 1}, .tenant = TenantId{2}}), 2);
  EXPECT_FALSE(flat.contains(key_of(1)));
}

TEST(FlatMap, IsEmptyAfterClear) {
  FlatMap<int> flat;
  flat.emplace(key_of(1), 1);
  flat.clear();
  EXPECT_EQ(flat.size(), 0U);
  EXPECT_EQ(flat.find(key_of(1)), nullptr);
  EXPECT_FALSE(flat.erase(key_of(1)));
}

}  // namespace
}  // namespace kvlift
