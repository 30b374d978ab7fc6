#include "core/range_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/random.hpp"

namespace kvlift {
namespace {

constexpr std::int64_t kPage = RangeAllocator::kAlignment;
constexpr Bytes pages(std::int64_t n) { return {n * kPage}; }

TEST(RangeAllocator, rounds_every_size_up_to_whole_pages) {
  RangeAllocator a(pages(10));
  EXPECT_EQ(a.allocate({1}), 0);
  EXPECT_EQ(a.allocate({kPage}), kPage);
  EXPECT_EQ(a.allocate({kPage + 1}), 2 * kPage);
  EXPECT_EQ(a.used(), pages(4));
}

TEST(RangeAllocator, a_capacity_that_is_no_multiple_of_a_page_loses_the_rest) {
  EXPECT_EQ(RangeAllocator({kPage * 2 - 1}).capacity(), pages(1));
  RangeAllocator none({kPage - 1});
  EXPECT_EQ(none.allocate({1}), std::nullopt);
}

TEST(RangeAllocator, refuses_what_does_not_fit_and_keeps_its_state) {
  RangeAllocator a(pages(4));
  EXPECT_EQ(a.allocate(pages(5)), std::nullopt);
  EXPECT_EQ(a.allocate(pages(4)), 0);
  EXPECT_EQ(a.allocate({1}), std::nullopt);
  EXPECT_EQ(a.used(), pages(4));
  EXPECT_EQ(a.largest_free(), Bytes{0});
}

TEST(RangeAllocator, takes_the_shortest_range_that_fits_then_the_lowest_offset) {
  RangeAllocator a(pages(12));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(a.allocate(pages(1)));
  for (const std::int64_t page : {1, 2, 3, 5, 8}) a.release(page * kPage, pages(1));  // holes of 3, 1 and 1
  EXPECT_EQ(a.allocate(pages(1)), 5 * kPage);
  EXPECT_EQ(a.allocate(pages(1)), 8 * kPage);
  EXPECT_EQ(a.allocate(pages(2)), 1 * kPage);
}

TEST(RangeAllocator, free_neighbours_become_one_in_every_order_of_release) {
  std::vector<std::int64_t> order{0, 1, 2};
  do {
    RangeAllocator a(pages(3));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.allocate(pages(1)));
    for (const std::int64_t page : order) a.release(page * kPage, pages(1));
    EXPECT_EQ(a.largest_free(), pages(3));
    EXPECT_EQ(a.allocate(pages(3)), 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RangeAllocator, a_fragmented_segment_refuses_although_enough_is_free) {
  RangeAllocator a(pages(10));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(a.allocate(pages(1)));
  for (std::int64_t page = 0; page < 10; page += 2) a.release(page * kPage, pages(1));
  EXPECT_EQ(a.used(), pages(5));
  EXPECT_EQ(a.largest_free(), pages(1));
  EXPECT_EQ(a.allocate(pages(2)), std::nullopt);
}

TEST(RangeAllocatorDeathTest, a_range_released_twice_stops_the_process) {
  RangeAllocator a(pages(3));
  ASSERT_TRUE(a.allocate(pages(1)) && a.allocate(pages(1)));
  a.release(0, pages(1));
  EXPECT_DEATH(a.release(0, pages(1)), "assertion failed");
}

TEST(RangeAllocator, ten_thousand_random_calls_never_hand_out_a_byte_twice) {
  Random random(7);
  RangeAllocator a(pages(256));
  std::map<std::int64_t, std::int64_t> taken;  // offset -> bytes
  std::int64_t used = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!taken.empty() && random.chance(1, 2)) {
      auto victim = taken.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random.below(taken.size())));
      a.release(victim->first, {victim->second});
      used -= RangeAllocator::rounded({victim->second});
      taken.erase(victim);
    } else {
      const Bytes size{static_cast<std::int64_t>(1 + random.below(20 * kPage))};
      const bool fits = RangeAllocator::rounded(size) <= a.largest_free().value;
      const auto offset = a.allocate(size);
      ASSERT_EQ(offset.has_value(), fits);
      if (!offset) continue;
      const auto after = taken.lower_bound(*offset);
      ASSERT_TRUE(after == taken.end() || *offset + size.value <= after->first);
      if (after != taken.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second, *offset);
      }
      ASSERT_LE(*offset + size.value, a.capacity().value);
      taken.emplace(*offset, size.value);
      used += RangeAllocator::rounded(size);
    }
    ASSERT_EQ(a.used().value, used);
  }
  for (const auto& [offset, size] : taken) a.release(offset, {size});
  EXPECT_EQ(a.largest_free(), a.capacity());
}

}  // namespace
}  // namespace kvlift
