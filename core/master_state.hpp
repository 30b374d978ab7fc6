// The inside of Master: objects in slots, their tasks beside them, and the indexes that make each call O(log n).
// Private to core/master*.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/flat_map.hpp"
#include "core/frequency_sketch.hpp"
#include "core/master.hpp"
#include "core/segment_room.hpp"

namespace kvlift {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xffffffff;

struct MemoryReplica {
  Allocation at;
  bool complete = false;
  std::int32_t references = 0;  ///< an offload reads it
};

/// One offload at most per object: queued in the mailbox of the DRAM's owner, then started by its pull.
struct OffloadState {
  bool live = false;
  NodeId owner = NodeId::none;
  SegmentId source = SegmentId::none;
  std::uint32_t serial = 0;
};

/// One promotion at most per object (I1).
struct PromotionState {
  bool live = false;
  bool from_prefetch = false;
  bool allocated = false;
  bool leased = false;  ///< when it was queued
  NodeId holder = NodeId::none;
  Bytes size;
  Time start;  ///< of registration, then of the allocation
  PromotionTicket ticket = PromotionTicket::any;
  bool is(PromotionTicket t) const { return t == PromotionTicket::any || t == ticket; }
  std::uint32_t serial = 0;
};

struct Object {
  bool live = false;
  ObjectKey key;
  NodeId writer = NodeId::none;
  Time put_start = kLongAgo;
  Bytes size;
  std::uint64_t version = 0;
  GroupId group = GroupId::none;
  Time lease_timeout = kLongAgo;
  Time soft_pin_timeout = kLongAgo;
  bool hard_pin = false;
  bool put_running = false;
  bool listed_running = false;   ///< legacy: ended, but still in the set of running puts
  bool promoted_unused = false;  ///< its MEMORY copy was promoted and nobody has asked for it since
  std::vector<MemoryReplica> memory;
  bool on_disk = false;
  NodeId disk_holder = NodeId::none;
  std::uint32_t disk_epoch = 0;
  std::int32_t disk_references = 0;
  OffloadState offload;
  PromotionState promotion;
  std::uint32_t serial = 0;             ///< of the last timed task that names this object
  std::uint64_t candidate_order = 0;    ///< of its entry among the candidates; 0: it has none
  Time candidate_stamp;                 ///< of that entry
  bool evictable = false;               ///< counted in the base of an eviction cycle
  std::uint32_t resident_at = kNoSlot;  ///< place in the list of objects with MEMORY replicas
};

struct Segment {
  bool live = false;
  NodeId node = NodeId::none;
  SegmentRoom room{Bytes{0}, 0};
};

struct ClientState {
  bool known = false;
  std::uint32_t epoch = 0;
  Time last_ping;
  SegmentId segment = SegmentId::none;
  bool disk_mounted = false;
  bool accepting = false;
  std::deque<std::pair<Slot, std::uint32_t>> offloads;    ///< (object, serial), oldest first
  std::deque<std::pair<Slot, std::uint32_t>> promotions;  ///< queued by promotion-on-hit
};

struct RetryCandidate {
  Time first_seen, due;
  std::int64_t tries = 0;
};

struct Master::State {
  State(const MasterSettings& settings, const LegacySettings& legacy, const Policy& policy, std::uint64_t seed);

  MasterSettings settings;
  LegacySettings legacy;
  Policy policy;
  Random random;
  bool serving = true;
  MasterCounters counters;

  std::vector<Object> objects;
  std::vector<Slot> free_slots;
  FlatMap<Slot> where;
  std::unordered_map<GroupId, std::vector<Slot>> groups;  // never iterated
  std::vector<Slot> residents;                            ///< objects with MEMORY replicas, any order
  std::vector<Segment> segments;                          ///< by SegmentId; ids are not used again
  std::vector<ClientState> clients;                       ///< by NodeId
  Bytes capacity, allocated;                              ///< of all live segments
  std::uint64_t next_version = 1;
  std::uint32_t next_serial = 1;
  std::int64_t promotions_in_flight = 0;

  // Timed tasks in the order they began; all live equally long, so the front is due first.
  enum class TaskKind : std::uint8_t { put, offload, promotion };
  struct TimedTask {
    Time start;
    Slot slot = kNoSlot;
    std::uint32_t serial = 0;
    TaskKind kind = TaskKind::put;
  };
  std::deque<TimedTask> timed;
  // DRAM of aborted writes, kept until no late write can land in it.
  std::multimap<Time, Allocation> parked;
  // Eviction candidates by (lease end, order of entry). A stamp may be too old: it is corrected when it comes up.
  struct Candidate {
    Time stamp;
    std::uint64_t order = 0;
    Slot slot = kNoSlot;
    bool operator<(const Candidate& o) const { return stamp != o.stamp ? stamp < o.stamp : order < o.order; }
  };
  std::set<Candidate> candidates_by_lease;
  std::uint64_t next_order = 1;
  std::int64_t evictable_objects = 0;
  bool need_eviction = false;
  bool eviction_idle = false;  ///< the last cycle freed nothing and nothing has changed since
  FrequencySketch sketch;
  std::map<ObjectKey, RetryCandidate> candidates;
  std::multimap<Time, ObjectKey> candidates_due;
  std::deque<std::pair<Slot, Allocation>> buffered;  ///< copies in the transit buffer, oldest first; some have gone

  // -- master_state.cpp
  Object* find(const ObjectKey& key);
  const Object* find(const ObjectKey& key) const;
  Slot slot_of(const Object& object) const { return static_cast<Slot>(&object - objects.data()); }
  Object& create(const ObjectKey& key, Bytes size, Time now);
  void erase(Object& object);
  void erase_if_empty(Object& object);
  /// Leaves the group the object is in; `none` joins no other.
  void join_group(Object& object, GroupId group);
  /// Brings base count, candidates and resident list up to date with the object's replicas.
  void refresh(Object& object);
  bool readable(const Object& object) const;
  Result<Allocation> allocate(Bytes size, NodeId preferred, SegmentId avoid, Region region = Region::shared);
  void free(const Allocation& at);
  void park(const Allocation& at, Time until);
  void drop_memory(Object& object, std::size_t replica);
  void grant_lease(Object& object, Time now);
  void extend_lease(Object& object, Time until);
  ClientState* client(NodeId n);
  const ClientState* client(NodeId n) const { return const_cast<State*>(this)->client(n); }
  double used_ratio() const;
  std::uint32_t begin_timed(TaskKind kind, Slot slot, Time now);

  // -- master_objects.cpp
  Result<std::vector<Allocation>> place(Object& object, const PutOptions& options, Time now);
  void abort_put(Object& object, Time now);
  void end_offload(Object& object);

  // -- master_promotion.cpp
  void end_promotion(Object& object, Time now, bool writer_is_done);
  Error admit_on_hit(const ObjectKey& key, Time now, bool retry);
  void note_candidate(const ObjectKey& key, Time now, bool retry);
  void retry_candidates(Time now);

  // -- master_room.cpp: room for promoted copies, as the policy takes it
  Result<Allocation> allocate_for_promotion(Bytes size, Time now);
  bool drop_from_buffer(Time now);
  bool swap_one(Time now);
  void drop_resident(Object& object);

  // -- master_offload.cpp
  Error enqueue_offload(Object& object, std::size_t replica, Time now);

  // -- master_eviction.cpp
  bool eviction_due() const;
  void evict(Time now);
  struct CycleTally {
    std::int64_t evicted = 0, deferred = 0;
    std::multiset<Time> early;  ///< lease ends of group members that went before their turn
  };
  void evict_one(Object& object, Time now, bool soft_pins_too, CycleTally& tally);
  bool is_full(const Segment& segment) const;
  bool group_is_leased(const Object& object, Time now) const;
  const Candidate* first_candidate();
  void enlist(Object& object, Time stamp, std::uint64_t order);
  void delist(Object& object);

  // -- master_clients.cpp
  void expire(NodeId n, Time now);
  void unmount(SegmentId segment, Time now);
  void drop_disk(NodeId n, Time now);
  void reap(Time now);
};

}  // namespace kvlift
