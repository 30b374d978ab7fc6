// What calibrate measures is complete and leaves nothing behind.
#include "real/calibrate.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "real/error.hpp"
#include "tests/real/store_harness.hpp"

namespace kvlift::real {
namespace {

TEST(Calibrate, MeasuresEachPartAndLeavesNothing) {
  const TemporaryFolder folder;
  const Calibration c =
      calibrate({.folder = folder.path(), .object_bytes = 128U << 10, .total_bytes = 8U << 20, .rounds = 3});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(c.reads.size(), 8U) << "4 KiB and 128 KiB, four depths each";
  for (const ReadPoint& p : c.reads) EXPECT_GT(p.bandwidth, 0) << p.bytes << " x " << p.objects;
  EXPECT_GT(c.write_bandwidth, 0);
  EXPECT_GT(c.copy_bandwidth, 0);
  EXPECT_GE(c.read_bandwidth, c.stream_bandwidth);
  EXPECT_GE(c.oversleep.ns, 0);
  EXPECT_GT(c.write_request.ns, 0);
}

TEST(Calibrate, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(calibrate({.folder = "/nonexistent/folder"}), RealError);
}

}  // namespace
}  // namespace kvlift::real
