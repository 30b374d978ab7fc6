// Ids that stand for all before them.
#include "traces/prefix_tree.hpp"

#include <gtest/gtest.h>

namespace kvlift {
namespace {

TEST(PrefixTree, TakesSharedPrefixesAndBranches) {
  PrefixTree tree;
  for (const std::vector<std::uint64_t>& ids :
       {std::vector<std::uint64_t>{0, 1, 2}, {0, 1, 2, 3}, {0, 4}, {5}, {}, {0, 1}}) {
    EXPECT_EQ(tree.add(ids), "");
  }
}

TEST(PrefixTree, SaysWhichIdIsBehindAnother) {
  PrefixTree tree;
  EXPECT_EQ(tree.add({0, 1}), "");
  const std::string why = " (an id stands for its block and all before it)";
  EXPECT_EQ(tree.add({2, 1}), "id 1 was first behind 0, found it behind 2" + why);
  EXPECT_EQ(tree.add({1}), "id 1 was first behind 0, found it at the start" + why);
  EXPECT_EQ(tree.add({7, 7}), "id 7 was first at the start, found it behind 7" + why);
}

}  // namespace
}  // namespace kvlift
