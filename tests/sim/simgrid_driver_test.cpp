// Times that the SimGrid driver gives to single effects and to effects that share a resource. A test is a process of
// its own here (SimGrid allows one engine to a process), so each builds one driver.
#include "sim/simgrid_driver.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace kvlift::sim {
namespace {

PlatformSettings platform() {
  HostSettings host;
  host.nodes = 2;
  host.ssd = {.read_bandwidth = 4e9, .write_bandwidth = 2e9, .stream_bandwidth = 1e9, .cached_bandwidth = 2e9};
  host.ssd.read_latency = microseconds(100);
  host.ssd.write_latency = microseconds(10);
  host.copy_bandwidth = 10e9;
  host.node_bandwidth = 1e9;
  host.nic_bandwidth = 5e9;
  host.nic_latency = microseconds(7);
  PlatformSettings p;
  p.hosts = {host, host};
  p.master_threads = 1;
  return p;
}

constexpr NodeId kA{0}, kB{1}, kElsewhere{2};
constexpr Bytes kMegabyte{1'000'000};

/// Ends of effects that begin together at 0, in ns, by their place in the list.
std::map<std::uint64_t, std::int64_t> ends(const PlatformSettings& p, std::vector<Effect> effects) {
  std::map<std::uint64_t, std::int64_t> at;
  SimGridDriver driver(p, [&](const Completion& c, Time now) {
    EXPECT_TRUE(at.emplace(static_cast<std::uint64_t>(c.id), now.ns).second) << "an effect completes once";
  });
  for (std::size_t i = 0; i < effects.size(); ++i) effects[i].id = static_cast<EffectId>(i + 1);
  const std::size_t count = effects.size();
  driver.take(effects);
  EXPECT_TRUE(effects.empty());
  driver.run();
  EXPECT_EQ(at.size(), count) << "every effect completes";
  return at;
}

Effect read(Bytes bytes, std::int32_t requests = 1, Bytes cached = {}) {
  return {.kind = EffectKind::disk_read, .node = kA, .requests = requests, .bytes = bytes, .cached = cached};
}

TEST(SimGridDriver, a_lone_read_takes_its_latencies_and_one_streams_bandwidth) {
  EXPECT_NEAR(static_cast<double>(ends(platform(), {read(kMegabyte, 3)})[1]), 300'000 + 1'000'000, 2);
}

TEST(SimGridDriver, reads_beyond_the_devices_bandwidth_share_it) {
  // Eight streams of 1 GB/s on a device of 4 GB/s: half each.
  const auto at = ends(platform(), std::vector<Effect>(8, read(kMegabyte)));
  for (std::uint64_t i = 1; i <= 8; ++i) EXPECT_NEAR(static_cast<double>(at.at(i)), 100'000 + 2'000'000, 10);
}

TEST(SimGridDriver, what_the_page_cache_holds_needs_no_device) {
  EXPECT_NEAR(static_cast<double>(ends(platform(), {read(kMegabyte, 1, kMegabyte)})[1]), 500'000, 2);
}

TEST(SimGridDriver, a_write_takes_more_of_the_device_than_a_read) {
  const auto at = ends(platform(), {{.kind = EffectKind::disk_write, .node = kA, .requests = 1, .bytes = kMegabyte}});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 10'000 + 500'000, 2);
}

TEST(SimGridDriver, a_copy_inside_a_host_takes_memory_time_only) {
  const auto at = ends(platform(), {{.kind = EffectKind::transfer, .node = kA, .peer = kB, .bytes = kMegabyte}});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 100'000, 2);
}

TEST(SimGridDriver, transfers_into_one_accelerator_share_its_link) {
  const Effect load{.kind = EffectKind::transfer, .node = kB, .peer = kA, .bytes = kMegabyte, .accelerator = kA};
  const auto at = ends(platform(), {load, load});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 2'000'000, 10);
  EXPECT_NEAR(static_cast<double>(at.at(2)), 2'000'000, 10);
}

TEST(SimGridDriver, the_slices_of_keys_take_their_time_before_the_bytes) {
  PlatformSettings p = platform();
  p.hosts[0].node_key_time = microseconds(200);
  const auto at = ends(
      p,
      {{.kind = EffectKind::transfer, .node = kB, .peer = kA, .requests = 5, .bytes = kMegabyte, .accelerator = kA}});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 1'000'000 + 1'000'000, 10);
}

TEST(SimGridDriver, a_transfer_between_hosts_takes_the_nics) {
  const auto at = ends(
      platform(),
      {{.kind = EffectKind::transfer, .node = kA, .peer = kElsewhere, .bytes = kMegabyte, .accelerator = kElsewhere}});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 7'000 + 200'000, 2);
}

TEST(SimGridDriver, the_master_serves_calls_one_after_another_when_it_has_one_worker) {
  PlatformSettings p = platform();
  p.rpc_latency = microseconds(50);
  p.rpc_service = microseconds(20);
  p.rpc_key_service = nanoseconds(1'000);
  const Effect call{.kind = EffectKind::rpc_request, .node = kA, .peer = kMasterNode, .requests = 10};
  const auto at = ends(p, {call, call});
  EXPECT_NEAR(static_cast<double>(at.at(1)), 80'000, 2);
  EXPECT_NEAR(static_cast<double>(at.at(2)), 110'000, 2);
}

TEST(SimGridDriver, a_timer_is_never_early_and_equal_dates_stay_in_order) {
  std::vector<std::uint64_t> order;
  std::vector<std::int64_t> times;
  SimGridDriver driver(platform(), [&](const Completion& c, Time now) {
    order.push_back(static_cast<std::uint64_t>(c.id));
    times.push_back(now.ns);
  });
  Effects effects;
  for (std::uint64_t i = 1; i <= 5; ++i)
    effects.push_back({.id = static_cast<EffectId>(i), .kind = EffectKind::timer, .at = Time{3'600'000'000'001}});
  driver.take(effects);
  driver.run();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  for (const std::int64_t t : times) EXPECT_EQ(t, 3'600'000'000'001);
}

TEST(SimGridDriver, an_empty_transfer_completes_at_once) {
  EXPECT_EQ(ends(platform(), {{.kind = EffectKind::transfer, .node = kA, .peer = kB}})[1], 0);
}

}  // namespace
}  // namespace kvlift::sim
