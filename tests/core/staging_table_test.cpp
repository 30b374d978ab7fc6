#include "core/staging_table.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kvlift {
namespace {

constexpr Bytes kSize{4096};
constexpr Bytes kRoom = StagingArena::footprint(kSize);
constexpr StagingWaiter kFirst{1}, kSecond{2};

ObjectKey key(std::uint64_t n) { return {.key = {.high = 0, .low = n}}; }

/// A window of one object; its read is under way.
std::uint32_t open(StagingTable& table, std::uint64_t k, std::uint64_t version = 1) {
  const auto staged = table.reserve(kRoom);
  EXPECT_TRUE(staged);
  const StagingTable::Object object{.key = key(k), .version = version, .size = kSize, .offset = staged->offset};
  return table.open(*staged, std::span(&object, 1));
}

void end_read(StagingTable& table, std::uint32_t window) {
  std::vector<StagingWaiter> woken;
  table.end_read(window, {}, woken);
}

TEST(StagingTable, FindsTheVeryBytesOnly) {
  StagingTable table(kRoom * 2, true, false);
  open(table, 1, 7);
  EXPECT_TRUE(table.find(key(1), 7, kSize));
  EXPECT_FALSE(table.find(key(1), 8, kSize)) << "another object of the key";
  EXPECT_FALSE(table.find(key(1), 7, kSize + kSize));
  EXPECT_FALSE(table.find(key(2), 7, kSize));
}

TEST(StagingTable, FindsNothingWhereNothingIsShared) {
  StagingTable table(kRoom, false, false);
  open(table, 1);
  EXPECT_FALSE(table.find(key(1), 1, kSize));
}

TEST(StagingTable, NamesWaitersInOrderOnceTheReadHasEnded) {
  StagingTable table(kRoom, true, false);
  const std::uint32_t window = open(table, 1);
  table.join(window);
  table.join(window);
  EXPECT_TRUE(table.wait(window, kSecond));
  EXPECT_TRUE(table.wait(window, kFirst));
  std::vector<StagingWaiter> woken;
  table.end_read(window, {}, woken);
  EXPECT_EQ(woken, (std::vector<StagingWaiter>{kSecond, kFirst}));
  EXPECT_FALSE(table.wait(window, kFirst)) << "it stands there already";
}

TEST(StagingTable, OneWhoLeavesIsNotNamed) {
  StagingTable table(kRoom, true, false);
  const std::uint32_t window = open(table, 1);
  table.join(window);
  EXPECT_TRUE(table.wait(window, kFirst));
  table.leave(window, kFirst);
  std::vector<StagingWaiter> woken;
  table.end_read(window, {}, woken);
  EXPECT_TRUE(woken.empty());
}

TEST(StagingTable, AFailedObjectIsNotFoundAndNotKept) {
  StagingTable table(kRoom, true, true);
  const std::uint32_t window = open(table, 1);
  std::vector<StagingWaiter> woken;
  table.end_read(window, std::vector<std::uint32_t>{0}, woken);
  EXPECT_FALSE(table.find(key(1), 1, kSize));
  table.leave(window);
  EXPECT_EQ(table.arena().used(), Bytes{0});
}

TEST(StagingTable, RoomIsFreeWhenTheLastUserLeaves) {
  StagingTable table(kRoom, true, false);
  const std::uint32_t window = open(table, 1);
  table.join(window);
  end_read(table, window);
  table.leave(window);
  EXPECT_FALSE(table.reserve(kRoom)) << "a user is left";
  table.leave(window);
  EXPECT_EQ(table.users(), 0);
  EXPECT_FALSE(table.find(key(1), 1, kSize));
  EXPECT_TRUE(table.reserve(kRoom));
}

TEST(StagingTable, KeptRoomGoesToOthersLongestIdleFirst) {
  StagingTable table(kRoom * 2, true, true);
  for (const std::uint64_t k : {1, 2}) {
    const std::uint32_t window = open(table, k);
    end_read(table, window);
    table.leave(window);
  }
  const std::uint32_t again = table.find(key(1), 1, kSize)->window;
  table.join(again);
  table.leave(again);  // idle since a shorter time than 2
  open(table, 3);
  EXPECT_TRUE(table.find(key(1), 1, kSize));
  EXPECT_FALSE(table.find(key(2), 1, kSize));
  open(table, 4);
  EXPECT_FALSE(table.reserve(kRoom)) << "windows with users keep their room";
}

TEST(StagingTable, ACopyIsIndependent) {
  StagingTable table(kRoom, true, true);
  const std::uint32_t window = open(table, 1);
  end_read(table, window);
  table.leave(window);
  StagingTable copy = table;
  copy.join(copy.find(key(1), 1, kSize)->window);
  EXPECT_FALSE(copy.reserve(kRoom));
  EXPECT_TRUE(table.reserve(kRoom));
  EXPECT_FALSE(table.find(key(1), 1, kSize));
}

}  // namespace
}  // namespace kvlift
