#include "core/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kvlift {
namespace {

TEST(Error, a_code_is_spelled_as_its_enumerator) {
  EXPECT_EQ(to_string(Error::OK), "OK");
  EXPECT_EQ(to_string(Error::PROMOTION_ALREADY_EXISTS), "PROMOTION_ALREADY_EXISTS");
  EXPECT_EQ(to_string(Error::NO_AVAILABLE_HANDLE), "NO_AVAILABLE_HANDLE");
}

TEST(Error, every_code_has_a_name_of_its_own_and_no_other_number_has_one) {
  std::set<std::string> names;
  int named = 0;
  for (int code = -21'000; code <= 10; ++code) {
    const std::string name(to_string(static_cast<Error>(code)));
    if (name == "UNKNOWN_ERROR") continue;
    ++named;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(named, 35);
}

TEST(Error, a_result_is_good_only_with_ok) {
  EXPECT_TRUE((Result<int>{Error::OK, 1}.ok()));
  EXPECT_FALSE((Result<int>{Error::RPC_TIMEOUT, 1}.ok()));
}

}  // namespace
}  // namespace kvlift
