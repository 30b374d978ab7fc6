// The platform that is stood in for: fair shares, bounds, and the same times as the simulator's.
#include "real/stand_in.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "real/fluid.hpp"

namespace kvlift::real {
namespace {

constexpr double kGiga = 1e9;

std::vector<std::uint64_t> ended_by(FluidResource& resource, Time now) {
  std::vector<std::uint64_t> ended;
  resource.advance(now, ended);
  return ended;
}

TEST(FluidResource, SharesFairlyAndGivesTheRestToThoseWithoutBound) {
  FluidResource resource(3 * kGiga);
  resource.add(1, 1 * kGiga, 0.5 * kGiga, Time{});  // bounded: 2 s
  resource.add(2, 2.5 * kGiga, 0, Time{});          // 2.5 GB/s are left for it: 1 s
  EXPECT_EQ(resource.next(), Time{} + seconds(1));
  EXPECT_EQ(ended_by(resource, Time{} + seconds(1)), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(ended_by(resource, Time{} + milliseconds(1'999)), std::vector<std::uint64_t>{});
  EXPECT_EQ(ended_by(resource, Time{} + seconds(2)), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(resource.next(), kNever);
}

TEST(FluidResource, ALateLookStillEndsEachAtItsOwnTime) {
  FluidResource resource(1 * kGiga);
  resource.add(1, 1 * kGiga, 0, Time{});
  resource.add(2, 2 * kGiga, 0, Time{});  // alone from 2 s on, ends at 3 s
  EXPECT_EQ(ended_by(resource, Time{} + seconds(10)), (std::vector<std::uint64_t>{1, 2}));
  resource.add(3, 1 * kGiga, 0, Time{} + seconds(10));
  EXPECT_EQ(resource.next(), Time{} + seconds(11));
}

PlatformSettings one_host() {
  PlatformSettings platform;
  platform.hosts[0].nodes = 2;
  platform.hosts[0].ssd = {.read_bandwidth = 2e9,
                           .write_bandwidth = 1e9,
                           .stream_bandwidth = 1e9,
                           .read_latency = microseconds(100),
                           .write_latency = microseconds(10)};
  platform.master_threads = 1;
  platform.rpc_latency = microseconds(50);
  platform.rpc_service = microseconds(20);
  platform.rpc_key_service = microseconds(1);
  return platform;
}

Effect effect(std::uint32_t id, EffectKind kind, std::int32_t requests, std::int64_t bytes) {
  return {.id = static_cast<EffectId>(id),
          .kind = kind,
          .node = NodeId{0},
          .peer = NodeId{0},
          .requests = requests,
          .bytes = {bytes}};
}

Time end_of(StandIn& stand_in, EffectId id) {
  std::vector<EffectId> ended;
  while (stand_in.next() != kNever) {
    const Time at = stand_in.next();
    stand_in.advance(at, ended);
    if (!ended.empty() && ended.back() == id) return at;
  }
  return kNever;
}

TEST(StandIn, ReadsTakeTheirLatencyAndTheBoundOfOneStream) {
  StandIn stand_in(one_host(), {.ssd = true});
  ASSERT_TRUE(stand_in.begin(effect(1, EffectKind::disk_read, 3, 10'000'000), Time{}));
  EXPECT_EQ(end_of(stand_in, EffectId{1}), Time{} + microseconds(300) + milliseconds(10));
}

TEST(StandIn, AWrittenByteTakesAsMuchMoreOfTheDeviceAsItIsSlower) {
  StandIn stand_in(one_host(), {.ssd = true});
  ASSERT_TRUE(stand_in.begin(effect(1, EffectKind::disk_write, 1, 10'000'000), Time{}));
  EXPECT_EQ(end_of(stand_in, EffectId{1}), Time{} + microseconds(10) + milliseconds(10));
}

TEST(StandIn, CallsWaitForTheMastersWorkers) {
  PlatformSettings platform = one_host();
  StandIn stand_in(platform, {.calls = true});
  for (std::uint32_t id : {1, 2}) {
    Effect call = effect(id, EffectKind::rpc_request, 10, 0);
    call.peer = kMasterNode;
    ASSERT_TRUE(stand_in.begin(call, Time{}));
  }
  EXPECT_EQ(end_of(stand_in, EffectId{1}), Time{} + microseconds(80));
  EXPECT_EQ(end_of(stand_in, EffectId{2}), Time{} + microseconds(110));
}

TEST(StandIn, TakesNoTimeForWhatItDoesNotStandInFor) {
  StandIn stand_in(one_host(), {.ssd = true});
  EXPECT_FALSE(stand_in.begin(effect(1, EffectKind::transfer, 1, 1'000), Time{}));
  EXPECT_FALSE(stand_in.begin(effect(1, EffectKind::rpc_request, 1, 0), Time{}));
  EXPECT_FALSE(stand_in.begin(effect(1, EffectKind::disk_read, 1, 0), Time{}));
  EXPECT_EQ(stand_in.next(), kNever);
}

}  // namespace
}  // namespace kvlift::real
