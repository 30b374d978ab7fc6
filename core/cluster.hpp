// A store: the master, its nodes (client and holder in one process each) and everything that runs between them.
//
// The user (an engine, a test) starts operations; a driver performs effects() and hands completions back;
// results() tells the user how operations ended, each exactly once. Nothing is called back: both lists are
// filled and the caller empties them.
//
//   user --probe/get/put--> Cluster --effects()--> driver
//   user <----results()----    ^                     |
//                              +---- on(completion) -+
//
// A node is one rank's store client: it mounts DRAM, keeps an SSD index, probes, reads and promotes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/driver.hpp"
#include "core/master.hpp"
#include "core/run.hpp"
#include "core/settings.hpp"

namespace kvlift {

struct KeyItem {
  ObjectKey key;
  Bytes size;
};

enum class Tier : std::uint8_t { none, memory, disk };

struct KeyOutcome {
  Error error = Error::OK;
  Tier tier = Tier::none;  ///< where a get found the bytes
};

/// The user's own name for an operation; comes back in its result.
enum class OpToken : std::uint64_t { none = 0 };

struct OpResult {
  enum class Kind : std::uint8_t { probe, get, put, remove, route };
  Kind kind = Kind::probe;
  OpToken token = OpToken::none;
  NodeId node = NodeId::none;
  Error error = Error::OK;       ///< of the operation as a whole; keys may differ
  std::vector<bool> present;     ///< probe, route: one flag a key
  std::vector<KeyOutcome> keys;  ///< get, put: one outcome a key
  Duration wait_promotion;       ///< get: waited for live promotions
  Duration load_dram, load_ssd;  ///< get: the rest of its time, by the tier that was awaited
};

/// One count per reason, summed over nodes; the master's are apart.
struct ClusterCounters {
  std::uint64_t probes = 0, probe_keys = 0, probe_hits = 0;
  std::uint64_t triggers = 0, keys_triggered = 0, keys_deduplicated = 0, cooldown_yields = 0, cooldowns_entered = 0;
  std::uint64_t triggers_refused_queue_full = 0, keys_released = 0;
  std::uint64_t kicks = 0, kicks_in_cooldown = 0;
  std::uint64_t delegated_keys = 0, delegations_failed = 0, delegations_in_cooldown = 0;
  std::uint64_t keys_already_resident = 0, keys_query_failed = 0, keys_not_in_index = 0;
  std::uint64_t jobs_yielded = 0;
  std::uint64_t promotions_started = 0, promotions_completed = 0, promotions_failed = 0, promotions_skipped = 0;
  std::uint64_t router_lookups = 0, router_keys_wanted = 0, router_keys_queued = 0, router_keys_refused = 0;
  std::uint64_t gets = 0, get_keys_memory = 0, get_keys_disk = 0, get_keys_missed = 0, get_keys_failed = 0;
  std::uint64_t get_waits = 0, get_waits_late = 0, get_keys_replanned = 0;
  std::uint64_t lease_expired = 0, staged_reads = 0, staged_reads_late = 0, staged_reads_failed = 0;
  std::uint64_t staging_waits = 0, staging_overflows = 0;
  std::uint64_t reads_shared = 0;  ///< keys for which somebody else's read of the SSD served
  std::uint64_t puts = 0, put_keys_stored = 0, put_keys_exist = 0, put_keys_refused = 0, put_retries = 0;
  std::uint64_t bytes_read_ssd = 0, bytes_written_ssd = 0, bytes_read_dram = 0;
  std::uint64_t bytes_read_for_promotion = 0;  ///< part of bytes_read_ssd
  std::uint64_t bytes_reread_ssd = 0;          ///< asked of the SSD for keys that it had been asked for before
  std::uint64_t rpcs_on_path = 0;              ///< that a request waits for before its first token
  std::uint64_t rpcs_off_path = 0;             ///< of prefetch, offload, saving and liveness
  std::uint64_t offload_buckets = 0, offload_rollbacks = 0, ssd_keys_evicted = 0;
  std::uint64_t stale_completions = 0;
  std::uint64_t corrupt_reads = 0;  ///< only counted with `verify`; any is a violation of I4
};

struct ClusterPlan {
  StoreSettings store;
  Policy policy;
  struct NodePlan {
    std::uint32_t host = 0;
    Bytes segment_bytes;
    Bytes page_cache_bytes = {};  ///< of the host
  };
  std::vector<NodePlan> nodes;
  std::uint64_t seed = 1;
  bool verify = false;  ///< keep a shadow of DRAM's contents and check every read against it; for tests
  bool places = false;  ///< the driver moves bytes: fill places()
};

/// The nodes of a platform, host after host.
std::vector<ClusterPlan::NodePlan> nodes_of(const PlatformSettings& platform);

class Cluster {
 public:
  explicit Cluster(const ClusterPlan& plan);
  ~Cluster();
  Cluster(const Cluster&);
  Cluster& operator=(const Cluster&);
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  /// Mounts everything and starts the periodic work.
  void start(Time now);

  // -- operations ---------------------------------------------------------------------------------------------
  /// Existence of keys in prefix order, and the trigger of a prefetch where the policy has it.
  void probe(NodeId node, OpToken token, std::span<const ObjectKey> keys, Time now);
  /// Reads keys into the node's memory; bytes of a key that fails are not delivered. `tokens` of the prompt decide
  /// about the wait where the policy goes by length.
  void get(NodeId node, OpToken token, std::span<const KeyItem> items, Time now, Tokens tokens = {0});
  /// A request passes router `router` (0, 1, ...) before it enters an engine: its keys' tiers are looked up, and what
  /// only SSD has is asked for. The result comes after the look-up; the promotions go on.
  void route(std::uint32_t router, OpToken token, std::span<const ObjectKey> keys, Time now);
  /// Stores new objects from the node's memory. An object that exists already counts as stored.
  void put(NodeId node, OpToken token, std::span<const KeyItem> items, Time now);
  void remove(NodeId node, OpToken token, const ObjectKey& key, Time now);

  // -- the driver's side --------------------------------------------------------------------------------------
  void on(const Completion& completion, Time now);
  /// Effects not yet taken by the driver, in the order to perform them; the driver clears the list.
  Effects& effects();
  /// Places of those effects, when the plan asks for them; the driver clears them with the effects.
  Places& places();
  /// Results not yet taken by the user; the user clears the list.
  std::vector<OpResult>& results();

  // -- faults of processes --------------------------------------------------------------------------------------
  /// The process dies: DRAM, throttle and jobs are gone, its SSD keeps what was on it.
  void crash(NodeId node, Time now);
  /// A new process on the same SSD: joins the master and reports what it finds (RC-58).
  void restart(NodeId node, Time now);
  bool alive(NodeId node) const;
  void restart_master(bool from_snapshot, Time now);

  // -- observation ----------------------------------------------------------------------------------------------
  const Master& master() const;
  const ClusterCounters& counters() const;
  /// Master's and cluster's counts by name, in a fixed order.
  Counters named_counters() const;
  /// Operations of the user that have not ended.
  std::int64_t open_operations() const;
  /// Nothing but periodic work is under way: no operation, no job, no promotion.
  bool quiet() const;
  /// What keeps it from being quiet, in words; for reports.
  std::string pending() const;
  /// Empty, or the invariant that is broken and where.
  std::string check(Time now) const;
  std::uint64_t hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvlift
