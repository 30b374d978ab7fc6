// Rows of "cluster": what the machines can do.
#include "tools/experiment/parameter_row.hpp"

namespace kvlift::experiment {

using namespace row;

void add_cluster_parameters(std::vector<Parameter>& out) {
  const char* assumed = "assumed";
  out.insert(
      out.end(),
      {
          number({"cluster.hosts[].count", "as many equal hosts", "one host"}, "hosts",
                 KVLIFT_FIELD(platform.hosts[i].count), 1, kNodesMax),
          number({"cluster.hosts[].nodes", "store processes of a host; each is the client of one rank", "one node"},
                 "nodes", KVLIFT_FIELD(platform.hosts[i].nodes), 1, kNodesMax),
          positive({"cluster.hosts[].segment_bytes", "DRAM that each node mounts to the pool", assumed}, "bytes",
                   KVLIFT_FIELD(platform.hosts[i].segment_bytes), kSegmentBytesMax),
          bandwidth({"cluster.hosts[].ssd.read_bandwidth_bytes_per_s", "the device when it only reads", assumed},
                    KVLIFT_FIELD(platform.hosts[i].ssd.read_bandwidth)),
          bandwidth({"cluster.hosts[].ssd.write_bandwidth_bytes_per_s", "the device when it only writes", assumed},
                    KVLIFT_FIELD(platform.hosts[i].ssd.write_bandwidth)),
          bandwidth({"cluster.hosts[].ssd.stream_bandwidth_bytes_per_s", "what one stream of requests reaches alone",
                     assumed},
                    KVLIFT_FIELD(platform.hosts[i].ssd.stream_bandwidth)),
          delay_us({"cluster.hosts[].ssd.read_latency_us", "wait of a read before its bytes stream", assumed},
                   KVLIFT_FIELD(platform.hosts[i].ssd.read_latency)),
          delay_us({"cluster.hosts[].ssd.write_latency_us", "wait of a write before its bytes stream", assumed},
                   KVLIFT_FIELD(platform.hosts[i].ssd.write_latency)),
          bandwidth(
              {"cluster.hosts[].ssd.cached_bandwidth_bytes_per_s", "one stream that the page cache answers", assumed},
              KVLIFT_FIELD(platform.hosts[i].ssd.cached_bandwidth)),
          number({"cluster.hosts[].ssd.page_cache_bytes", "page cache of buffered reads; 0: direct I/O", assumed},
                 "bytes", KVLIFT_FIELD(platform.hosts[i].ssd.page_cache_bytes), 0),
          bandwidth({"cluster.hosts[].copy_bandwidth_bytes_per_s", "copies inside the host, all together", assumed},
                    KVLIFT_FIELD(platform.hosts[i].copy_bandwidth)),
          bandwidth({"cluster.hosts[].node_bandwidth_bytes_per_s", "one transfer into or out of a node", assumed},
                    KVLIFT_FIELD(platform.hosts[i].node_bandwidth)),
          delay_us({"cluster.hosts[].node_key_time_us", "more for each key of such a transfer: its slices", assumed},
                   KVLIFT_FIELD(platform.hosts[i].node_key_time)),
          bandwidth({"cluster.hosts[].nic_bandwidth_bytes_per_s", "network, each way", assumed},
                    KVLIFT_FIELD(platform.hosts[i].nic_bandwidth)),
          delay_us({"cluster.hosts[].nic_latency_us", "network, one way", assumed},
                   KVLIFT_FIELD(platform.hosts[i].nic_latency)),
          delay_us({"cluster.rpc_latency_us", "one way of an RPC, any pair of processes", assumed},
                   KVLIFT_FIELD(platform.rpc_latency)),
          delay_us({"cluster.rpc_service_us", "handler time of one RPC", assumed}, KVLIFT_FIELD(platform.rpc_service)),
          delay({"cluster.rpc_key_service_ns", "more handler time for each key an RPC carries", assumed}, "ns", 1,
                KVLIFT_FIELD(platform.rpc_key_service)),
          number({"cluster.master_threads", "RPC workers of the master", "store-mechanics 7: max_threads"}, "threads",
                 KVLIFT_FIELD(platform.master_threads), 1, 100'000),
      });
}

}  // namespace kvlift::experiment
