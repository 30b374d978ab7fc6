// A whole experiment with real bytes: what users get is what they put, nothing is left behind, and the decisions are
// those of the other drivers.
#include "real/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "real/error.hpp"
#include "real/run.hpp"
#include "tests/real/store_harness.hpp"
#include "tests/step/run_harness.hpp"

namespace kvlift::real {
namespace {

using ::testing::HasSubstr;

/// Ten of the plan's seconds in one of this machine's: the pauses of the small run are long.
RealOptions quick(const std::string& folder) {
  RealOptions options;
  options.folder = folder;
  options.time_scale = 10;
  options.sync = false;
  return options;
}

RunPlan promoting() {
  RunPlan plan = step::small_run();
  plan.places = true;
  return plan;
}

TEST(Executor, WhatUsersGetIsWhatTheyPut) {
  const TemporaryFolder folder;
  const RunPlan plan = promoting();
  Executor executor(plan, quick(folder.path()), folder.path());
  World world(plan);
  executor.run(world);
  const RunResult result = world.result();
  EXPECT_EQ(result.phases.back().requests.size(), 6U);
  EXPECT_GT(count_of(result.phases.back().counters, "promotion_committed"), 0U);
  EXPECT_GT(executor.counters().marked, 0U);
  EXPECT_GE(executor.counters().arrived, 36U) << "six prompts of six blocks";
  EXPECT_EQ(executor.counters().wrong_bytes, 0U);
  step::expect_parts_add_up(result);
}

TEST(Executor, DamageOnTheSsdIsAMissAndNeverWrongBytes) {
  const TemporaryFolder folder;
  RunPlan plan = promoting();
  plan.policy = {};  // the get itself reads the SSD
  Executor executor(plan, quick(folder.path()), folder.path());
  World world(plan);
  // From now on the file system has other bytes than were written: each record's payload is hit in its middle.
  std::jthread damage([&folder](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
        std::error_code gone;
        const std::uintmax_t bytes = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
        if (gone || entry.path().filename() == "owner") continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        for (std::uintmax_t at = 300'000; at + 6 < bytes; at += 1'000'000)
          file.seekp(static_cast<std::streamoff>(at)).write("damage", 6);
      }
    }
  });
  executor.run(world);
  damage.request_stop();
  damage.join();
  EXPECT_GT(executor.store(NodeId{0}).counters().mismatches, 0U);
  EXPECT_EQ(executor.counters().wrong_bytes, 0U);
}

TEST(Run, LeavesNothingInTheFolder) {
  const TemporaryFolder folder;
  const RunResult result = run(promoting(), quick(folder.path()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  std::string all;
  for (const auto& [name, value] : result.performed_by) all += name + "=" + value + "\n";
  EXPECT_THAT(all, HasSubstr("0 of them with other bytes"));
  EXPECT_THAT(all, HasSubstr("time 10, size 1"));
}

TEST(Run, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(run(promoting(), quick("/nonexistent/folder")), RealError); }

TEST(Run, WhatStandsInIsNeverFasterThanThePlatform) {
  const TemporaryFolder folder;
  RunPlan plan = step::small_run(2, 1);
  plan.policy = {};
  plan.platform.hosts[0].ssd.read_bandwidth = plan.platform.hosts[0].ssd.stream_bandwidth = 10e6;
  RealOptions options = quick(folder.path());
  options.stand_in.ssd = true;
  const RunResult result = run(plan, options);
  for (const RequestRecord& r : result.phases.back().requests)
    EXPECT_GE(r.load_ssd, milliseconds(600)) << "six MiB at 10 MB/s";
}

}  // namespace
}  // namespace kvlift::real
