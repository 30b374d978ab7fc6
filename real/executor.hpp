// Carries the effects of a world out on this machine: KV goes between memory, SSD and links; timers and computing
// are waited for. One thread decides and waits; copies and the device work beside it.
//
//   world --effects--> begin --> ring, link, timers, stand-in --> both over --> completion --> world
//
// An effect is over when the real work is, and what stands in for another platform (stand_in.hpp) is as well.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/range_allocator.hpp"
#include "core/slots.hpp"
#include "core/world.hpp"
#include "real/arena.hpp"
#include "real/due_queue.hpp"
#include "real/link.hpp"
#include "real/open_ring.hpp"
#include "real/options.hpp"
#include "real/ssd_stores.hpp"

namespace kvlift::real {

struct ExecutorCounters {
  std::uint64_t wrong_bytes = 0;  ///< objects that reached a user and were not what was asked for
  std::uint64_t marked = 0;       ///< objects written by users
  std::uint64_t arrived = 0;      ///< objects that reached a user
  std::uint64_t waits = 0;        ///< times that the thread slept
};

class Executor {
 public:
  /// `plan.places` must be set. Throws RealError when memory, folder or ring cannot be had.
  Executor(const RunPlan& plan, const RealOptions& options, const std::string& folder);
  ~Executor();

  /// Runs the world to its end.
  void run(World& world);
  /// What carried the run and how often, one line a part: for the result.
  std::vector<std::pair<std::string, std::string>> describe() const;
  const ExecutorCounters& counters() const { return counters_; }
  const SsdStore& store(NodeId node) const { return (*stores_)[index(node)]; }
  /// Step downs of the ring, one line each.
  const std::vector<std::string>& steps() const { return steps_; }

 private:
  struct Running {
    bool live = false;
    Effect effect = {};
    std::vector<Extent> extents = {};
    std::uint32_t next = 0;  ///< transfer: extent to begin next
    std::uint32_t open = 0;  ///< transfer: extents under way
    bool real = false;       ///< real work is still to come or under way
    bool stands_in = false;  ///< the platform that is stood in for is not done yet
    Error error = Error::OK;
    Bytes arrived = {};
    std::vector<std::uint32_t> failed = {};
  };
  /// One extent of a transfer.
  struct Copy {
    bool live = false;
    std::uint32_t running = 0, extent = 0;
    std::int64_t user_offset = -1;  ///< room in the user area of user_end()'s node; -1: none is needed
  };
  struct Node {
    std::uint64_t segment = 0, staging = 0, user = 0;  ///< offsets into the arena
    RangeAllocator user_room;
  };

  Time now();
  void take(World& world);
  void begin(const Effect& effect, std::span<const Extent> extents);
  void begin_disk(std::uint32_t running);
  /// Begins what there is room for, in order; of each node the oldest first.
  void pump_transfers();
  /// False when it must wait for room.
  bool begin_copy(std::uint32_t running);
  void copy_over(const TransferDone& done);
  void disk_over(NodeId node, const SsdDone& done);
  void real_over(std::uint32_t running);
  void over_if_both(std::uint32_t running);
  /// Sees to everything that has come; true when completions are ready.
  bool poll();
  void wait();
  void deliver(World& world);
  /// Waits for what still uses the memory.
  void drain();
  std::uint64_t offset_of(const Place& place) const;
  /// Of a transfer, the end in an accelerator; nullptr when both are in the store.
  static const Place* user_end(const Extent& extent);

  RealOptions options_;
  std::vector<std::string> steps_;
  std::vector<Node> nodes_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<SsdStores> stores_;  ///< by node
  std::unique_ptr<Link> link_;
  std::unique_ptr<StandIn> stand_in_;
  Slots<Running> running_;
  Slots<Copy> copies_;
  std::deque<std::uint32_t> waiting_;  ///< transfers that need room or a place on the link, oldest first
  DueQueue<std::uint32_t> alarms_;     ///< timers and computing
  std::unordered_map<EffectId, std::uint32_t> by_effect_;  ///< those that are stood in for
  std::deque<std::uint32_t> ready_;
  Time last_;
  std::int64_t origin_ = 0;  ///< of the machine's clock, ns
  ExecutorCounters counters_;
  std::vector<SsdStores::Finished> disks_done_;
  std::vector<TransferDone> copies_done_;
  std::vector<EffectId> stood_in_;
};

}  // namespace kvlift::real
