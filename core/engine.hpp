// The serving engine: requests wait for a place, load cached KV, compute what is missing, decode.
//
//   arrived --> probing --> waiting --> loading --> ready --> prefilling --> decoding --> finished
//                              ^           (asynchronous only)    |
//                              +------ load failed: its tokens are computed again (blocks_step)
//
// An engine works in steps. A step decodes one token of every decoding request and spends what is left of its
// token budget on prefill, oldest request first. Steps that only decode are taken as one run up to the next request
// that ends; the run is cut at the end of its current step when somebody may enter. Times are those of single steps.
// With Load::blocks_step the step that admits requests first waits for their loads, one after another; with
// Load::asynchronous a request loads aside while steps go on.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <unordered_map>
#include <vector>

#include "core/cluster.hpp"
#include "core/engine_settings.hpp"
#include "core/run.hpp"
#include "core/slots.hpp"
#include "core/workload.hpp"

namespace kvlift {

/// Blocks in the accelerator's own prefix cache: LRU by block.
class GpuCache {
 public:
  explicit GpuCache(std::int64_t capacity) : capacity_(capacity) {}
  GpuCache(const GpuCache&) = delete;
  GpuCache& operator=(const GpuCache&) = delete;
  GpuCache(GpuCache&&) = default;
  GpuCache& operator=(GpuCache&&) = default;

  /// Leading blocks that are here; they become the youngest.
  std::size_t match(const std::vector<std::uint64_t>& blocks, std::size_t count);
  void insert(const std::vector<std::uint64_t>& blocks, std::size_t count);

 private:
  std::int64_t capacity_;
  std::list<std::uint64_t> young_first_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where_;  // never iterated
};

class Engine {
 public:
  /// `first_node` is the node of rank 0. Effect ids are made by `World`, which owns the step's effect.
  Engine(const EngineSettings& settings, std::uint32_t number, NodeId first_node);

  /// `block_bytes` are the sizes of the request's blocks, repeated cyclically.
  /// `arrived`: when the client asked; later is the time it takes to get here.
  void arrive(const Request& request, std::uint32_t phase, std::uint64_t client, Time arrived, Time now,
              Cluster& cluster);
  /// What the store may have of the request: the keys of its full blocks, of every rank.
  std::vector<ObjectKey> keys_of(const Request& request) const;
  /// A result whose token names this engine.
  void on_result(const OpResult& result, Time now, Cluster& cluster);
  /// The compute of the step under way has ended.
  void on_step_computed(Time now, Cluster& cluster);
  /// Begins a step when there is work and none is under way. Called after every event.
  void continue_work(Time now, Cluster& cluster);

  /// The compute that must be started now, if any; taken by the caller.
  bool take_compute(Duration& span);

  struct Finished {
    RequestRecord record;
    std::uint64_t client = 0;
  };
  std::vector<Finished>& finished() { return finished_; }
  std::int64_t open_requests() const { return open_requests_; }
  std::int64_t open_saves() const { return open_saves_; }
  void set_block_bytes(std::vector<Bytes> sizes) { block_bytes_ = std::move(sizes); }

  /// Which engine a token belongs to.
  static std::uint32_t engine_of(OpToken token) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(token) >> 48);
  }

 private:
  enum class State : std::uint8_t { probing, waiting, loading, ready, prefilling, decoding };
  struct Item {
    bool live = false;
    Request request;
    RequestRecord record;
    std::uint64_t client = 0;
    State state = State::probing;
    std::size_t blocks = 0;   ///< full blocks that may be loaded or saved
    std::size_t gpu_hit = 0;  ///< leading blocks in the accelerator
    std::size_t hit = 0;      ///< leading blocks that the store listed
    bool needs_load = false;
    bool loaded_once = false;
    std::int64_t ranks_pending = 0;
    std::size_t good = 0;         ///< leading blocks that every rank has loaded
    std::vector<bool> from_disk;  ///< by block: some rank read it from an SSD
    Time load_started;
    Tokens computed;   ///< prompt tokens in the accelerator
    Tokens chunk;      ///< of the step under way
    Duration compute;  ///< of the steps that computed its chunks
    Tokens generated;
  };

  OpToken token(std::uint32_t slot, std::uint32_t kind, std::int64_t rank) const;
  ObjectKey key_of(std::uint64_t block, std::int64_t rank) const;
  std::size_t blocks_of(const Request& request) const;
  Bytes bytes_of(std::size_t block_index) const;
  bool probe_when_scheduled(Time now, Cluster& cluster);
  void start_probe(std::uint32_t slot, Time now, Cluster& cluster);
  void after_probe(std::uint32_t slot, const OpResult* result);
  void start_load(std::uint32_t slot, Time now, Cluster& cluster);
  void on_rank_loaded(std::uint32_t slot, std::int64_t rank, const OpResult& result, Time now);
  void end_load(std::uint32_t slot, const OpResult& last, Time now);
  void save(std::uint32_t slot, Time now, Cluster& cluster);
  void plan_step(Time now);
  void start_compute(Time now);
  bool someone_may_enter() const;
  void cut_decode_run(Time now);
  void first_token(std::uint32_t slot, Time now, Cluster& cluster);
  void finish(std::uint32_t slot, Time now);
  Tokens missing(const Item& item) const { return item.request.input - item.computed; }

  EngineSettings settings_;
  std::uint32_t number_;
  NodeId first_node_;
  std::vector<Bytes> block_bytes_;
  GpuCache gpu_;
  Slots<Item> items_;
  std::deque<std::uint32_t> waiting_;      ///< in order of arrival
  std::vector<std::uint32_t> running_;     ///< prefilling or decoding, in order of admission
  std::vector<std::uint32_t> step_loads_;  ///< loads that the step under way waits for
  std::size_t step_load_next_ = 0;
  std::int64_t loads_active_ = 0;
  bool changed_ = false;  ///< something happened since the last look for work
  bool step_active_ = false;
  bool compute_due_ = false;
  Duration compute_span_;   ///< from now to the end of the step, or of the run of steps
  Duration step_span_;      ///< of one step
  std::int64_t steps_ = 1;  ///< steps of the run under way; more than one only while all decode
  Time run_started_;
  std::vector<Finished> finished_;
  std::int64_t open_requests_ = 0;
  std::int64_t open_saves_ = 0;
};

}  // namespace kvlift
