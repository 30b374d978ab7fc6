// The master: all metadata of the store and every decision about DRAM. It never touches data.
//
// A value with an RPC's worth of work per call: arguments and the time go in, the answer comes out, nothing is
// done behind the caller's back. Work that the original does in threads (eviction, reaper, retries, client
// expiry) is done by tick(), which a driver calls when next_tick() says so.
//
// Behaviour follows store-mechanics section 2. Where the regression cases show the original to be wrong the
// right outcome is built; LegacySettings brings the wrong one back where a measurement needs it.
//
//   object:  absent -> PROCESSING (put start) -> COMPLETE (put end) -> evicted to SSD-only -> ... -> gone
//   promotion task:  absent -> registered (source pinned) -> allocated (staged replica PROCESSING) -> committed
//                                        \-> failed, reaped or cancelled: source unpinned, staged replica erased
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/policy.hpp"
#include "core/random.hpp"
#include "core/settings.hpp"
#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

/// A place in the pool's DRAM.
struct Allocation {
  NodeId node = NodeId::none;  ///< who mounted the segment
  SegmentId segment = SegmentId::none;
  std::int64_t offset = 0;  ///< bytes from the segment's start
  Bytes size;
  std::uint64_t version = 0;  ///< of the object it was allocated for; a put's end names it
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// Names one promotion task, so that a late call of an older task of the same key and holder cannot touch a
/// newer one. A prefetch's holder chooses its own; `any` matches every task and is for callers with one task only.
enum class PromotionTicket : std::uint64_t { any = 0 };

/// What a query tells of an object: only COMPLETE replicas are visible.
struct ObjectView {
  Error error = Error::OBJECT_NOT_FOUND;
  bool in_memory = false;
  Allocation memory;  ///< the replica nearest to the asking node, when in_memory
  bool on_disk = false;
  NodeId holder = NodeId::none;    ///< when on_disk
  std::uint32_t holder_epoch = 0;  ///< the holder's incarnation at registration: an endpoint that may be stale
  Bytes size;
  Duration lease{0};  ///< granted from now on; 0 for read-only queries, which never feed a transfer
};

struct PutOptions {
  std::int64_t replica_num = 0;     ///< 0: the master's default
  NodeId preferred = NodeId::none;  ///< for local_first
  std::optional<Duration> soft_pin_ttl = std::nullopt;
  bool hard_pin = false;
  GroupId group = GroupId::none;
};

struct OffloadTask {
  ObjectKey key;
  Allocation source;
  std::uint64_t version = 0;  ///< of the object; a report of another version is refused (RC-42)
};
struct OffloadReport {
  ObjectKey key;
  Bytes size;                 ///< negative: not done, release only
  std::uint64_t version = 0;  ///< 0: re-registration by a rescan
};
struct PromotionTask {
  ObjectKey key;
  Bytes size;
  PromotionTicket ticket = PromotionTicket::any;
};

/// One count per reason; names are metric labels. Sums are checked against the trace (I12).
struct MasterCounters {
  std::uint64_t put_started = 0, put_ended = 0, put_revoked = 0, put_refused_exists = 0, put_refused_no_handle = 0;
  std::uint64_t objects_evicted = 0, bytes_evicted = 0, eviction_cycles = 0, eviction_cycles_fruitless = 0;
  std::uint64_t objects_lost = 0;  ///< dropped with no copy left
  std::uint64_t offload_queued = 0, offload_refused = 0, offload_done = 0, offload_nacked = 0,
                disk_replicas_evicted = 0;
  std::uint64_t prefetch_registered = 0, prefetch_unavailable = 0, prefetch_not_found = 0, prefetch_put_running = 0,
                prefetch_already = 0, prefetch_no_source = 0, prefetch_not_holder = 0, prefetch_watermark = 0,
                prefetch_cap = 0;
  std::uint64_t on_hit_queued = 0, on_hit_frequency = 0, on_hit_watermark = 0, on_hit_not_found = 0,
                on_hit_in_flight = 0, on_hit_memory_present = 0, on_hit_no_source = 0, on_hit_cap = 0,
                on_hit_retried = 0, on_hit_given_up = 0;
  std::uint64_t promotion_allocated = 0, promotion_no_handle = 0, promotion_committed = 0, promotion_failed = 0,
                promotion_expired = 0, promotion_cancelled = 0, bytes_promoted = 0;
  std::uint64_t promotion_late = 0;           ///< dropped: not pulled within the policy's budget
  std::uint64_t promotion_doubled = 0;        ///< committed beside another copy; any is a violation of I1
  std::uint64_t objects_swapped = 0;          ///< evicted to make room for one promotion
  std::uint64_t leases_dangling = 0;          ///< granted to a promotion that then failed
  std::uint64_t promoted_evicted_unused = 0;  ///< promoted copies evicted before any leasing query met them
  std::uint64_t leases_granted = 0, clients_expired = 0, puts_reaped = 0, offloads_reaped = 0;
  friend bool operator==(const MasterCounters&, const MasterCounters&) = default;
};

/// The state of DRAM at one moment, for gauges and for the planner's warning (RC-70).
struct DramUsage {
  Bytes capacity, allocated;
  Bytes leased;       ///< bytes of MEMORY replicas whose object is under lease
  Bytes unevictable;  ///< leased, pinned, referenced or incomplete
};

class Master {
 public:
  Master(const MasterSettings& settings, const LegacySettings& legacy, const Policy& policy, std::uint64_t seed);
  ~Master();
  Master(const Master&);
  Master& operator=(const Master&);
  Master(Master&&) noexcept;
  Master& operator=(Master&&) noexcept;

  // -- clients and segments (section 2.8) -------------------------------------------------------------------
  /// A client that is unknown becomes known; liveness starts now. `epoch` grows with each restart of the node.
  void register_client(NodeId client, std::uint32_t epoch, Time now);
  /// False when the master has forgotten the client: it must register, mount and rescan again.
  [[nodiscard]] bool ping(NodeId client, Time now);
  Result<SegmentId> mount_segment(NodeId client, Bytes capacity, Time now);
  Error unmount_segment(SegmentId segment, Time now);
  Error mount_disk(NodeId client, bool accepting, Time now);
  /// The holder withdraws its disk tier on purpose: mailboxes are emptied, LOCAL_DISK replicas vanish.
  Error drain_disk(NodeId client, Time now);

  // -- objects (2.2, 2.3, 2.5) ------------------------------------------------------------------------------
  Result<std::vector<Allocation>> put_start(NodeId writer, const ObjectKey& key, Bytes size, const PutOptions& options,
                                            Time now);
  /// `version` as put_start gave it: the end of a put that was replaced meanwhile is INVALID_WRITE, also when the
  /// same client replaced it. 0 does not look.
  Error put_end(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version = 0);
  Error put_revoke(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version = 0);
  Result<std::vector<Allocation>> upsert_start(NodeId writer, const ObjectKey& key, Bytes size,
                                               const PutOptions& options, Time now);
  Error upsert_end(NodeId writer, const ObjectKey& key, Time now, std::uint64_t version = 0);
  Error remove(const ObjectKey& key, bool force, Time now);
  /// Removes what remove() would remove without force, of every key of the tenant; the number removed.
  std::int64_t remove_all(TenantId tenant, Time now);

  // -- queries (2.4) ----------------------------------------------------------------------------------------
  /// Existence of a batch in prefix order; grants leases as Policy::probe_lease says. `out` gets one flag a key.
  void exist(std::span<const ObjectKey> keys, Time now, std::vector<bool>& out);
  /// Replicas with a lease; the hit may queue a promotion-on-hit. `reader` decides which replica is nearest.
  ObjectView query(NodeId reader, const ObjectKey& key, Time now);
  /// Replicas only: no lease, no promotion, no metrics.
  ObjectView query_read_only(NodeId reader, const ObjectKey& key) const;

  // -- promotion (2.9, 2.10, 2.11, 2.13) --------------------------------------------------------------------
  Error register_prefetch_task(NodeId caller, const ObjectKey& key, Time now,
                               PromotionTicket ticket = PromotionTicket::any);
  /// BatchPrefetchToMemory of a router (#3417): queues a task for the key's holder, behind the policy's gates.
  Error prefetch_to_memory(const ObjectKey& key, Time now);
  /// Tasks that were queued for this holder, at most as many as one pull hands out, oldest first.
  void pull_promotions(NodeId holder, Time now, std::vector<PromotionTask>& out);
  Result<Allocation> promotion_alloc_start(NodeId caller, const ObjectKey& key, Bytes size, Time now,
                                           PromotionTicket ticket = PromotionTicket::any);
  Error notify_promotion_success(NodeId caller, const ObjectKey& key, Time now,
                                 PromotionTicket ticket = PromotionTicket::any);
  Error notify_promotion_failure(NodeId caller, const ObjectKey& key, Time now,
                                 PromotionTicket ticket = PromotionTicket::any);

  // -- offload (2.7) ----------------------------------------------------------------------------------------
  Error pull_offloads(NodeId holder, bool accepting, Time now, std::vector<OffloadTask>& out);
  /// `accepted` gets one flag a report: false where the bytes on SSD are not listed, so that the holder drops them.
  Error notify_offload(NodeId holder, std::span<const OffloadReport> reports, Time now,
                       std::vector<bool>* accepted = nullptr);
  Error evict_disk_replicas(NodeId holder, std::span<const ObjectKey> keys, Time now);

  // -- the master's own work ---------------------------------------------------------------------------------
  /// Eviction, reaper, client expiry, retries: whatever is due at `now`.
  void tick(Time now);
  /// When tick() next has something to do, on the grid of `eviction_period`; kNever when only a call can change that.
  Time next_tick(Time now) const;
  /// False while restoring: every call answers UNAVAILABLE_IN_CURRENT_STATUS where the original does.
  void set_serving(bool serving);
  /// A new master process. With a snapshot complete replicas survive, with a grace lease of one TTL (RC-64);
  /// tasks, candidates, mailboxes and running puts are lost, and with them their pins.
  void restart(bool from_snapshot, Time now);

  // -- observation: grants nothing, changes nothing ------------------------------------------------------------
  const MasterCounters& counters() const;
  DramUsage dram(Time now) const;
  std::int64_t promotions_in_flight() const;
  bool has_promotion_task(const ObjectKey& key) const;
  std::int64_t object_count() const;
  Time lease_timeout(const ObjectKey& key) const;  ///< kLongAgo when never leased or absent
  /// Empty, or which of I1, I2, I3, I8 is broken and where. Walks everything; for tests.
  std::string check(Time now) const;
  /// Same state, same value, on every compiler.
  std::uint64_t hash() const;

  struct State;  ///< defined in master_state.hpp, for the master's own sources

 private:
  std::unique_ptr<State> state_;
};

}  // namespace kvlift
