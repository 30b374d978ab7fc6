#include "core/ssd_index.hpp"

#include <gtest/gtest.h>

namespace kvlift {
namespace {

ObjectKey key(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }
SsdIndex::Object object(std::uint64_t n, std::int64_t size) { return {key(n), {size}, 1}; }

std::uint32_t add(SsdIndex& index, std::initializer_list<SsdIndex::Object> objects) {
  return index.insert_bucket(std::vector<SsdIndex::Object>(objects));
}

TEST(SsdIndex, knows_the_size_of_what_it_holds_and_nothing_else) {
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  add(index, {object(1, 100), object(2, 200)});
  EXPECT_EQ(index.size_of(key(2)), Bytes{200});
  EXPECT_FALSE(index.size_of(key(3)));
  EXPECT_FALSE(index.size_of({.key = {.high = 0, .low = 2}, .tenant = TenantId{1}}));  // RC-11
}

TEST(SsdIndex, bytes_of_a_bucket_count_until_the_whole_bucket_is_gone) {  // RC-39
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  add(index, {object(1, 100), object(2, 200)});
  index.erase(key(1));
  EXPECT_FALSE(index.size_of(key(1)));
  EXPECT_EQ(index.used(), Bytes{300});
  index.erase(key(2));
  EXPECT_EQ(index.used(), Bytes{0});
}

TEST(SsdIndex, room_is_made_by_the_oldest_buckets_first) {
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  const auto oldest = add(index, {object(1, 400)});
  add(index, {object(2, 400)});
  std::vector<std::uint32_t> buckets;
  std::vector<ObjectKey> victims;
  ASSERT_TRUE(index.plan_room({500}, 1, buckets, victims));
  EXPECT_EQ(buckets, std::vector{oldest});
  EXPECT_EQ(victims, std::vector{key(1)});
  EXPECT_EQ(index.used(), Bytes{800}) << "planning changes nothing";
}

TEST(SsdIndex, lru_spares_what_was_read_fifo_does_not) {
  for (const auto& [eviction, victim] : {std::pair{SsdEviction::fifo, 1}, std::pair{SsdEviction::lru, 2}}) {
    SsdIndex index({1000}, 100, eviction);
    add(index, {object(1, 400)});
    add(index, {object(2, 400)});
    index.touch(key(1));
    std::vector<std::uint32_t> buckets;
    std::vector<ObjectKey> victims;
    ASSERT_TRUE(index.plan_room({300}, 1, buckets, victims));
    EXPECT_EQ(victims, std::vector{key(static_cast<std::uint64_t>(victim))});
  }
}

TEST(SsdIndex, without_eviction_a_full_device_has_no_room) {
  SsdIndex index({1000}, 100, SsdEviction::none);
  add(index, {object(1, 900)});
  std::vector<std::uint32_t> buckets;
  std::vector<ObjectKey> victims;
  EXPECT_FALSE(index.plan_room({200}, 1, buckets, victims));
  EXPECT_TRUE(index.plan_room({100}, 1, buckets, victims));
  EXPECT_TRUE(buckets.empty());
}

TEST(SsdIndex, more_than_the_quota_never_fits) {
  SsdIndex index({1000}, 2, SsdEviction::fifo);
  std::vector<std::uint32_t> buckets;
  std::vector<ObjectKey> victims;
  EXPECT_FALSE(index.plan_room({1001}, 1, buckets, victims));
  EXPECT_FALSE(index.plan_room({1}, 3, buckets, victims));
}

TEST(SsdIndex, the_watermark_evicts_from_high_to_low) {
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  for (std::uint64_t n = 0; n < 10; ++n) add(index, {object(n, 100)});
  std::vector<std::uint32_t> buckets;
  std::vector<ObjectKey> victims;
  index.plan_watermark(0.9, 0.8, buckets, victims);
  EXPECT_EQ(victims, (std::vector{key(0), key(1)}));
}

TEST(SsdIndex, a_key_is_in_one_bucket_only) {  // RC-34
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  const auto first = add(index, {object(1, 100)});
  add(index, {object(1, 100), object(2, 100)});
  EXPECT_EQ(index.keys(), 2);
  index.erase_bucket(first);
  EXPECT_FALSE(index.size_of(key(1)));
  EXPECT_EQ(index.used(), Bytes{100});
}

TEST(SsdIndex, a_rescan_lists_every_object_once_oldest_bucket_first) {
  SsdIndex index({1000}, 100, SsdEviction::fifo);
  add(index, {object(5, 10)});
  add(index, {object(3, 10), object(4, 10)});
  index.erase(key(3));
  std::vector<SsdIndex::Object> all;
  index.list(all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].key, key(5));
  EXPECT_EQ(all[1].key, key(4));
}

}  // namespace
}  // namespace kvlift
