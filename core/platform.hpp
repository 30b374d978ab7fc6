// What the machines can do, as numbers. Only drivers that model time read them; the real executor measures them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

/// One SSD. A request waits its latency, then streams at the smaller of `stream_bandwidth` and its fair share of
/// the device's time: so small requests and low depth get less than the device's bandwidth, as on a real one.
/// Reads and writes share the device's time; a byte written takes read_bandwidth / write_bandwidth times as much
/// of it as a byte read.
struct SsdSettings {
  double read_bandwidth = 3.0e9;    ///< bytes/s of the device when it only reads
  double write_bandwidth = 2.0e9;   ///< bytes/s of the device when it only writes
  double stream_bandwidth = 1.5e9;  ///< bytes/s that one request stream reaches alone
  Duration read_latency = microseconds(90);
  Duration write_latency = microseconds(30);
  double cached_bandwidth = 1.5e9;  ///< bytes/s of one stream that the page cache answers
  Bytes page_cache_bytes = {0};     ///< of the host's page cache for buffered reads; 0: direct I/O
};

/// One machine with its SSD; `nodes` store processes share it (a node is one rank's client).
struct HostSettings {
  std::int64_t count = 1;  ///< as many equal hosts
  std::int64_t nodes = 1;
  Bytes segment_bytes = {1LL << 30};  ///< DRAM that each node mounts to the pool
  SsdSettings ssd;
  double copy_bandwidth = 20.0e9;  ///< bytes/s of copies inside the host, all together
  double node_bandwidth = 10.0e9;  ///< bytes/s between host memory and the accelerator of one node
  Duration node_key_time = {0};    ///< more for each key of such a transfer: its many slices, one a layer
  double nic_bandwidth = 25.0e9;   ///< bytes/s each way
  Duration nic_latency = microseconds(5);
};

struct PlatformSettings {
  std::vector<HostSettings> hosts = {HostSettings{}};
  Duration rpc_latency = microseconds(50);        ///< one way, any pair of processes
  Duration rpc_service = microseconds(20);        ///< handler time of one RPC
  Duration rpc_key_service = nanoseconds(1'000);  ///< more for each key it carries
  std::int64_t master_threads = 16;               ///< RPC workers of the master
};

}  // namespace kvlift
