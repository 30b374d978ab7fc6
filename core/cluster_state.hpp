// The inside of Cluster: its operations as values, and the nodes they run on. Private to core/cluster*.cpp.
//
// Every operation lives in a slot and waits for at most a few effects at a time; a completion finds it by the
// component and slot in its id, and counts only while the operation still waits for that very sequence number.
// An operation whose node died is cleared when its next completion arrives, and gives back what it holds.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/cluster.hpp"
#include "core/page_cache.hpp"
#include "core/promotion.hpp"
#include "core/slots.hpp"
#include "core/ssd_index.hpp"
#include "core/staging_table.hpp"
#include "core/throttle.hpp"

namespace kvlift {

enum class Component : std::uint8_t {
  none,
  probe,
  get,
  get_deadline,
  staged_read,
  put,
  remove,
  job,
  offload,
  on_hit,
  ping,
  join,
  master_tick,
  route,
  user = 64,  ///< ids from here on belong to the cluster's user
};

/// What every operation has: whose it is, and which effect it waits for.
struct Operation {
  bool live = false;
  NodeId node = NodeId::none;
  std::uint32_t epoch = 0;      ///< of the node when the operation began
  std::uint32_t waits_for = 0;  ///< sequence of the one effect under way; 0 is none
  bool answered = false;        ///< the RPC under way has been served, its reply is on the way
  Error answer = Error::OK;
};

/// Several transfers under way at once.
class TransferSet {
 public:
  struct Part {
    std::uint32_t sequence = 0;
    Allocation place;  ///< one of the places that the transfer touches; its segment tells the peer's life
    Bytes bytes;
  };
  void add(const Part& part) { parts_.push_back(part); }
  /// Takes the part of that sequence; false when there is none.
  bool take(std::uint32_t sequence, Part& out) {
    for (Part& part : parts_) {
      if (part.sequence != sequence) continue;
      out = part;
      part = parts_.back();
      parts_.pop_back();
      return true;
    }
    return false;
  }
  bool empty() const { return parts_.empty(); }
  void clear() { parts_.clear(); }

 private:
  std::vector<Part> parts_;
};

struct ProbeOp : Operation {
  OpToken token = OpToken::none;
  std::vector<ObjectKey> keys;
  std::vector<bool> present;
};

struct GetOp : Operation {
  enum class State : std::uint8_t { querying, waiting, requerying, reading };
  struct Item {
    KeyItem item;
    ObjectView view = {};
    Time lease_until = kLongAgo;  ///< client's own clock: query sent + granted lease
    KeyOutcome outcome = {};
    bool settled = false;
    bool in_read = false;   ///< of a staged read
    bool promoted = false;  ///< a promotion of it has completed; its replica must be asked for again
  };
  OpToken token = OpToken::none;
  State state = State::querying;
  std::vector<Item> items;
  std::vector<std::uint32_t> asked;       ///< items of the query under way
  std::vector<ObjectView> answers;        ///< to it, by item of `asked`; they count when the reply is here
  std::vector<std::uint32_t> wait_order;  ///< SSD-bound items in the order they are waited for
  std::size_t wait_next = 0;
  bool wait_pending = false;      ///< registered as a waiter for wait_order[wait_next]
  std::uint32_t timer = 0;        ///< sequence of the batch deadline
  std::vector<NodeId> endpoints;  ///< holders still to be read, one after another when serial
  std::int64_t parts = 0;         ///< staged reads under way
  TransferSet memory;
  bool memory_settled = false;  ///< outcomes of the memory keys are final
  Time started, query_sent, wait_began, read_started, memory_done;
  Duration waited;
  Tokens tokens;  ///< of the prompt that the keys stand for
};

/// The read of one holder's keys on behalf of a get: RPC, staging, SSD, pull.
struct StagedReadOp : Operation {
  enum class State : std::uint8_t { asking, worker_wait, staging_wait, reading, answering, pulling, refused };
  State state = State::asking;
  std::uint32_t parent = 0;  ///< slot of the get
  NodeId holder = NodeId::none;
  std::uint32_t holder_epoch = 0;
  std::vector<std::uint32_t> items;  ///< indexes into the get's items
  std::size_t window_begin = 0, window_end = 0;
  Bytes window_bytes;
  std::vector<StagingTable::Loan> loans;  ///< of items [window_begin, window_end): where their bytes stand
  std::vector<std::uint32_t> windows;     ///< of the holder's staging table that it is a user of; its own is the last
  bool reads = false;                     ///< the last of them is its own
  std::int64_t reads_pending = 0;         ///< windows whose read is under way
  Time staged_at;
  bool arrived = false;  ///< counted among the holder's open reads
  bool has_worker = false;
  bool followed = false;  ///< by the read of the next part
};

struct PutOp : Operation {
  enum class State : std::uint8_t { starting, retry_wait, writing, ending };
  struct Item {
    KeyItem item;
    KeyOutcome outcome = {};
    std::vector<Allocation> targets = {};
    bool started = false;
  };
  OpToken token = OpToken::none;
  State state = State::starting;
  std::vector<Item> items;
  std::int64_t tries_left = 0;
  TransferSet writes;
};

struct RemoveOp : Operation {
  OpToken token = OpToken::none;
  ObjectKey key;
};

/// One promotion being performed by a job or an on-hit round.
struct PromotionRun {
  Promotion chain;
  PromotionTicket ticket = PromotionTicket::any;
  Allocation target;
  Staged staged;            ///< until a window is opened for it
  StagingTable::Loan loan;  ///< where its bytes stand, or will
  bool borrowed = false;    ///< by somebody else's read
};

/// A prefetch job: of a trigger (asks the master where the keys are, promotes its own, delegates the rest) or
/// of another node's trigger (promotes).
struct JobOp : Operation {
  enum class State : std::uint8_t { queued, querying, registering, yielding, promoting, delegating };
  State state = State::queued;
  bool delegated = false;  ///< runs on behalf of another node: no query
  std::vector<Reservation> keys;
  std::size_t chunk_begin = 0, chunk_end = 0;
  std::vector<ObjectView> views;
  std::vector<Reservation> local;
  std::size_t local_next = 0;
  std::vector<PromotionTicket> tickets;  ///< of local[i], where a chunk is registered as a whole
  std::vector<std::pair<NodeId, std::vector<Reservation>>> remote;  ///< by holder, in order of first key
  std::size_t remote_next = 0;
  PromotionRun run;
};

struct OffloadOp : Operation {
  enum class State : std::uint8_t { sleeping, pulling, evicting, writing, reporting, trimming };
  State state = State::sleeping;
  std::vector<OffloadTask> tasks;
  std::vector<std::vector<OffloadTask>> buckets;
  std::size_t bucket_next = 0;
  std::vector<OffloadReport> reports;
  std::vector<bool> accepted;  ///< by report
  std::vector<std::uint32_t> doomed_buckets;
  std::vector<ObjectKey> doomed_keys;
  std::uint32_t written_bucket = 0;
  bool has_written = false;
};

/// One worker of a node's pull; the first of them also asks the master.
struct PullOp : Operation {
  enum class State : std::uint8_t { idle, sleeping, pulling, promoting };
  State state = State::idle;
  std::vector<PromotionTask> tasks;  ///< of the answer under way
  PromotionRun run;
};

/// A request on its way through a router: where are its keys, and who shall bring those that only SSD has?
struct RouteOp : Operation {
  enum class State : std::uint8_t { looking_up, asking_master, asking_holders };
  OpToken token = OpToken::none;
  State state = State::looking_up;
  std::vector<ObjectKey> keys;
  std::vector<ObjectView> views;
  std::vector<ObjectKey> wanted;
  std::vector<std::pair<NodeId, std::vector<Reservation>>> by_holder;  ///< in order of first key
  std::size_t next = 0;
};

struct PingOp : Operation {
  bool asking = false;  ///< a call is under way; else it sleeps
  bool known = true;
};

struct JoinOp : Operation {
  enum class State : std::uint8_t { mounting, scanning, retrying };
  State state = State::mounting;
  std::vector<SsdIndex::Object> objects;
  std::size_t reported = 0;
};

struct NodeState {
  NodeState(const ClusterPlan::NodePlan& node, const ClusterPlan& plan);
  /// A fresh process: volatile state anew, the SSD index as it was.
  void reset_process(const ClusterPlan& plan);

  bool alive = true;
  bool joining = false;
  std::uint32_t epoch = 1;
  std::uint32_t host = 0;
  Bytes segment_bytes;
  SegmentId segment = SegmentId::none;  ///< as mounted by this process
  Throttle<> throttle;
  std::int64_t prefetch_active = 0;
  std::deque<std::uint32_t> prefetch_queue;  ///< job slots
  std::deque<PromotionTask> pulled;          ///< handed out by the master, not begun yet
  std::deque<std::uint32_t> yielding;        ///< job slots that wait until nobody reads the SSD here
  std::int64_t reads_open = 0;               ///< staged reads that have arrived and not ended
  std::int64_t read_active = 0;
  std::deque<std::uint32_t> worker_waiters;   ///< staged-read slots
  std::deque<std::uint32_t> staging_waiters;  ///< staged-read slots
  StagingTable staging;
  SsdIndex ssd;
  bool accepting = true;
  std::vector<OffloadTask> tail;  ///< objects of a bucket that is not full yet
  Time tail_since = kLongAgo;
  std::vector<ObjectKey> withdrawn;  ///< rolled back here after a report without an answer; the master may list them
};

struct Cluster::State {
  explicit State(const ClusterPlan& plan);

  ClusterPlan plan;
  Master master;
  std::vector<NodeState> nodes;
  std::vector<PageCache> page_caches;  ///< by host
  Effects effects;
  Places places;
  std::vector<OpResult> results;
  ClusterCounters counters;
  std::int64_t open_operations = 0;
  std::uint32_t next_sequence = 1;
  std::uint32_t tick_waits_for = 0;
  Time tick_at = kNever;

  Slots<ProbeOp> probes;
  Slots<GetOp> gets;
  Slots<StagedReadOp> staged_reads;
  Slots<PutOp> puts;
  Slots<RemoveOp> removes;
  Slots<JobOp> jobs;
  Slots<RouteOp> routes;
  std::vector<OffloadOp> offloads;  // one a node, as the three below
  std::vector<PullOp> pulls;        ///< `pull_workers` a node
  std::vector<PingOp> pings;
  std::vector<JoinOp> joins;
  // Scratch of single calls, kept for its memory.
  std::vector<Reservation> reserved;
  std::vector<WaiterId> woken;
  // Shadow of DRAM: (segment, offset) -> what was last written there whole. Only with plan.verify.
  std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<std::int64_t, ObjectKey>> shadow;

  // -- cluster.cpp: dispatch, effects, processes
  NodeState& node(NodeId n) { return nodes[index(n)]; }
  bool current(NodeId n, std::uint32_t epoch) const { return nodes[index(n)].alive && nodes[index(n)].epoch == epoch; }
  /// The process that mounted the segment lives and has it mounted still.
  bool reachable(const Allocation& at) const {
    return at.node != NodeId::none && nodes[index(at.node)].alive && nodes[index(at.node)].segment == at.segment;
  }
  void on(const Completion& completion, Time now);
  std::uint32_t emit(Component component, std::uint32_t slot, Effect effect);
  /// The same with places, which `fill(add)` hands one by one to `add(extent)`; skipped when the plan wants none.
  template <class Fill>
  std::uint32_t emit(Component component, std::uint32_t slot, Effect effect, Fill&& fill) {
    if (plan.places) {
      effect.first_extent = static_cast<std::uint32_t>(places.extents.size());
      fill([this](const Extent& extent) { places.extents.push_back(extent); });
      effect.extents = static_cast<std::uint32_t>(places.extents.size()) - effect.first_extent;
    }
    return emit(component, slot, effect);
  }
  void note_forgotten();
  void call(Component component, std::uint32_t slot, Operation& op, NodeId peer, std::size_t keys);
  void reply(Component component, std::uint32_t slot, Operation& op, NodeId peer);
  void sleep(Component component, std::uint32_t slot, Operation& op, Time until);
  void begin(Operation& op, NodeId n);
  /// The SSD of `n` is about to read the key.
  void note_ssd_read(NodeId n, const ObjectKey& key, Bytes size) {
    if (node(n).ssd.touch(key)) counters.bytes_reread_ssd += static_cast<std::uint64_t>(size.value);
  }
  /// Bytes of the object that need no device access, now that it is read or written there.
  Bytes cached_bytes(NodeId n, const ObjectKey& key, Bytes size) {
    return page_caches[node(n).host].touch(key, size) ? size : Bytes{0};
  }
  void schedule_tick(Time now);
  void start(Time now);
  void crash(NodeId n, Time now);
  void restart(NodeId n, Time now);
  OpResult& result(OpResult::Kind kind, OpToken token, NodeId n, Error error);
  void shadow_begin_write(const Allocation& at);
  void shadow_end_write(const Allocation& at, const ObjectKey& key);
  bool shadow_holds(const Allocation& at, const ObjectKey& key) const;

  // -- cluster_get.cpp
  void on_probe(std::uint32_t slot, const Completion& c, Time now);
  void on_get(std::uint32_t slot, std::uint32_t sequence, const Completion& c, Time now);
  void on_get_deadline(std::uint32_t slot, Time now);
  void get_plan_reads(std::uint32_t slot, Time now);
  void get_continue_wait(std::uint32_t slot, Time now);
  void get_end_wait(std::uint32_t slot, Time now);
  void get_start_reads(std::uint32_t slot, Time now);
  void get_start_endpoint(std::uint32_t slot, NodeId holder, Time now);
  void get_follow(std::uint32_t child, Time now);
  void get_part_ended(std::uint32_t slot, Time now);
  void get_settle(std::uint32_t slot, Time now);
  void get_finish(std::uint32_t slot, Error error, Time now);
  void wake_waiters(Time now);

  // -- cluster_staged_read.cpp
  void on_staged_read(std::uint32_t slot, const Completion& c, Time now);
  void staged_read_arrived(std::uint32_t slot, Time now);
  std::optional<StagingTable::Loan> staged_elsewhere(const NodeState& holder, const ObjectKey& key) const;
  void staged_read_landed(std::uint32_t slot, const Completion& c, std::vector<StagingWaiter>& awake);
  void staged_read_gathered(std::uint32_t slot, Time now);
  std::vector<StagingTable::Object> staged_read_collect(std::uint32_t slot, std::size_t limit);
  void staged_read_window(std::uint32_t slot, Time now);
  void staged_read_leave(std::uint32_t slot);
  void wake_borrowers(NodeId holder, const std::vector<StagingWaiter>& awake, Time now);
  void staged_read_release(std::uint32_t slot, Time now);
  void staged_read_fail(std::uint32_t slot, Error error, Time now);
  void staged_read_end(std::uint32_t slot, Time now);
  void serve_readers(NodeId holder, Time now);

  // -- cluster_put.cpp
  void on_put(std::uint32_t slot, std::uint32_t sequence, const Completion& c, Time now);
  void put_start_writes(std::uint32_t slot, Time now);
  void put_finish(std::uint32_t slot, Error error, Time now);
  void on_remove(std::uint32_t slot, const Completion& c, Time now);

  // -- cluster_prefetch.cpp
  bool trigger_prefetch(NodeId n, std::span<const ObjectKey> keys, bool ignore_cooldown, Time now);
  void accept_delegation(NodeId n, std::span<const Reservation> keys, Time now);
  Duration get_wait_budget(const GetOp& op) const;
  void get_start_timer(std::uint32_t slot, Duration budget, Time now);
  /// The oracle's view: what only SSD has stands in its holder's DRAM.
  void foresee(ObjectView& view) const {
    if (view.error != Error::OK || view.in_memory || !view.on_disk) return;
    view.in_memory = true;
    view.memory = {view.holder, nodes[index(view.holder)].segment, 0, view.size};
  }
  void enqueue_job(NodeId n, bool delegated, Time now);
  void start_jobs(NodeId n, Time now);
  void on_job(std::uint32_t slot, const Completion& c, Time now);
  void job_next_chunk(std::uint32_t slot, Time now);
  void job_classify(std::uint32_t slot, Time now);
  void job_next_local(std::uint32_t slot, Time now);
  void job_next_remote(std::uint32_t slot, Time now);
  bool job_yields(std::uint32_t slot);
  void resume_yielding(NodeId n, Time now);
  void job_promotion_done(std::uint32_t slot, Time now);
  void job_finish(std::uint32_t slot, Time now);
  void job_abort(std::uint32_t slot);
  void job_reserve_chunk(JobOp& job, Time now);
  void job_start_local(std::uint32_t slot, Time now);
  void job_next_registration(std::uint32_t slot, Time now);
  void job_registered(std::uint32_t slot, Error answer, Time now);

  // -- cluster_pull.cpp
  bool pulls_promotions() const;
  std::uint32_t first_puller(NodeId n) const;
  void start_periodic_work(NodeId n, Time now);
  void on_pull(std::uint32_t slot, const Completion& c, Time now);
  void pull_begin(NodeId n);
  void pull_work(NodeId n, Time now);
  void pull_sleep(NodeId n, Time now);

  // -- cluster_route.cpp
  void on_route(std::uint32_t slot, const Completion& c, Time now);
  void route_choose(std::uint32_t slot, Time now);
  void route_next_holder(std::uint32_t slot);

  // -- cluster_promotion.cpp: the chain, for jobs and on-hit rounds. True when it is done.
  bool promotion_start(Component component, std::uint32_t slot, Operation& op, PromotionRun& run, Time now);
  bool promotion_on(Component component, std::uint32_t slot, Operation& op, PromotionRun& run, const Completion& c,
                    Time now);
  bool promotion_perform(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                         const Promotion::Commands& commands, Time now);
  void promotion_abort(Operation& op, PromotionRun& run);
  void open_window(NodeState& holder, PromotionRun& run);

  // -- cluster_offload.cpp: offload rounds, pings, joining
  void on_offload(std::uint32_t slot, const Completion& c, Time now);
  void offload_pack(std::uint32_t slot, Time now);
  void offload_next_bucket(std::uint32_t slot, Time now);
  void offload_write(std::uint32_t slot, Time now);
  void offload_report(std::uint32_t slot, Time now);
  void offload_after_report(std::uint32_t slot, Error error, Time now);
  void offload_trim(std::uint32_t slot, Time now);
  void offload_sleep(std::uint32_t slot, Time now);
  void on_ping(std::uint32_t slot, const Completion& c, Time now);
  void join(NodeId n, Time now);
  void on_join(std::uint32_t slot, const Completion& c, Time now);
};

inline Place place_of(const Allocation& a) {
  return {.kind = Place::Kind::segment, .node = a.node, .number = index(a.segment), .offset = a.offset};
}
inline Place staging_place(NodeId node, std::int64_t offset) {
  return {.kind = Place::Kind::staging, .node = node, .offset = offset};
}
inline Place ssd_place(NodeId node) { return {.kind = Place::Kind::ssd, .node = node}; }
/// Item of an operation of the user.
inline Place user_place(NodeId node, OpToken token, std::size_t item) {
  return {.kind = Place::Kind::user,
          .node = node,
          .number = static_cast<std::uint64_t>(token),
          .offset = static_cast<std::int64_t>(item)};
}

/// An operation that waits for another one's read of the SSD.
struct Borrower {
  Component component = Component::none;
  std::uint32_t slot = 0;
};
inline StagingWaiter waiter_of(Component component, std::uint32_t slot) {
  return static_cast<StagingWaiter>(static_cast<std::uint64_t>(component) << 32 | slot);
}
inline Borrower borrower_of(StagingWaiter waiter) {
  const auto bits = static_cast<std::uint64_t>(waiter);
  return {static_cast<Component>(bits >> 32), static_cast<std::uint32_t>(bits)};
}

/// A handler runs once, or twice where the driver delivered the request twice; the first answer counts.
template <class Handler>
void serve(const Completion& c, Handler&& handler) {
  handler(true);
  if (c.delivered_twice) handler(false);
}

}  // namespace kvlift
