#include "core/engine.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace kvlift {

namespace {
// Kinds of operation in a token: engine (16 bits), kind (4), rank (12), slot (32).
constexpr std::uint32_t kProbe = 0;
constexpr std::uint32_t kLoad = 1;
constexpr std::uint32_t kSave = 2;
}  // namespace

std::size_t GpuCache::match(const std::vector<std::uint64_t>& blocks, std::size_t count) {
  std::size_t hit = 0;
  while (hit < count) {
    const auto at = where_.find(blocks[hit]);
    if (at == where_.end()) break;
    young_first_.splice(young_first_.begin(), young_first_, at->second);
    ++hit;
  }
  return hit;
}

void GpuCache::insert(const std::vector<std::uint64_t>& blocks, std::size_t count) {
  if (capacity_ <= 0) return;
  for (std::size_t i = count; i-- > 0;) {  // the prefix's start ends up youngest, so that a tail is evicted first
    const auto at = where_.find(blocks[i]);
    if (at != where_.end()) {
      young_first_.splice(young_first_.begin(), young_first_, at->second);
      continue;
    }
    young_first_.push_front(blocks[i]);
    where_.emplace(blocks[i], young_first_.begin());
  }
  while (static_cast<std::int64_t>(where_.size()) > capacity_) {
    where_.erase(young_first_.back());
    young_first_.pop_back();
  }
}

Engine::Engine(const EngineSettings& settings, std::uint32_t number, NodeId first_node)
    : settings_(settings), number_(number), first_node_(first_node), gpu_(settings.gpu_cache_blocks) {}

OpToken Engine::token(std::uint32_t slot, std::uint32_t kind, std::int64_t rank) const {
  return static_cast<OpToken>(static_cast<std::uint64_t>(number_) << 48 | static_cast<std::uint64_t>(kind) << 44 |
                              static_cast<std::uint64_t>(rank) << 32 | slot);
}

ObjectKey Engine::key_of(std::uint64_t block, std::int64_t rank) const {
  return {.key = {.high = settings_.ranks_share_keys ? 0 : static_cast<std::uint64_t>(rank) + 1, .low = block}};
}

Bytes Engine::bytes_of(std::size_t block_index) const {
  const Bytes whole = block_bytes_.empty() ? settings_.bytes_per_token * settings_.block_tokens.value
                                           : block_bytes_[block_index % block_bytes_.size()];
  return settings_.ranks_share_keys ? whole : Bytes{whole.value / settings_.ranks};
}

// -- arrival and probe ----------------------------------------------------------------------------------------

/// Only full blocks are kept, and at least one token of a prompt is always computed.
std::size_t Engine::blocks_of(const Request& request) const {
  const auto full = static_cast<std::size_t>((request.input.value - 1) / settings_.block_tokens.value);
  return std::min(full, request.block_ids.size());
}

std::vector<ObjectKey> Engine::keys_of(const Request& request) const {
  std::vector<ObjectKey> keys;
  const std::int64_t ranks = settings_.ranks_share_keys ? 1 : settings_.ranks;
  const std::size_t blocks = blocks_of(request);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::int64_t r = 0; r < ranks; ++r) keys.push_back(key_of(request.block_ids[b], r));
  }
  return keys;
}

void Engine::arrive(const Request& request, std::uint32_t phase, std::uint64_t client, Time arrived, Time now,
                    Cluster& cluster) {
  const std::uint32_t slot = items_.acquire();
  Item& item = items_[slot];
  item = Item{};
  item.live = true;
  item.request = request;
  item.client = client;
  item.record.id = request.id;
  item.record.phase = phase;
  item.record.arrival = arrived;
  item.record.input = request.input;
  item.record.output = request.output;
  item.blocks = blocks_of(request);
  item.state = State::waiting;
  ++open_requests_;
  changed_ = true;
  waiting_.push_back(slot);
  if (settings_.probe_at_arrival) start_probe(slot, now, cluster);
}

void Engine::start_probe(std::uint32_t slot, Time now, Cluster& cluster) {
  Item& item = items_[slot];
  item.gpu_hit = gpu_.match(item.request.block_ids, item.blocks);
  item.state = State::probing;
  std::vector<ObjectKey> keys;
  const std::int64_t ranks = settings_.ranks_share_keys ? 1 : settings_.ranks;
  for (std::size_t b = item.gpu_hit; b < item.blocks; ++b) {
    for (std::int64_t r = 0; r < ranks; ++r) keys.push_back(key_of(item.request.block_ids[b], r));
  }
  if (keys.empty()) return after_probe(slot, nullptr);
  cluster.probe(first_node_, token(slot, kProbe, 0), keys, now);
}

void Engine::after_probe(std::uint32_t slot, const OpResult* result) {
  Item& item = items_[slot];
  item.hit = item.gpu_hit;
  if (result != nullptr && result->error == Error::OK) {
    const auto ranks = static_cast<std::size_t>(settings_.ranks_share_keys ? 1 : settings_.ranks);
    // A block counts when every rank's key of it is there; the first gap ends the prefix.
    std::size_t i = 0;
    while (item.hit < item.blocks) {
      const bool all =
          std::all_of(result->present.begin() + static_cast<std::ptrdiff_t>(i),
                      result->present.begin() + static_cast<std::ptrdiff_t>(i + ranks), [](bool p) { return p; });
      if (!all) break;
      ++item.hit;
      i += ranks;
    }
  }
  item.needs_load = item.hit > item.gpu_hit;
  item.good = item.gpu_hit;
  item.computed = settings_.block_tokens * static_cast<std::int64_t>(item.gpu_hit);
  item.record.hit_gpu = item.computed;  // here and not with a load: a prompt may be in the accelerator as a whole
  item.state = item.needs_load ? State::waiting : State::ready;
}

// -- loading --------------------------------------------------------------------------------------------------

void Engine::start_load(std::uint32_t slot, Time now, Cluster& cluster) {
  Item& item = items_[slot];
  item.state = State::loading;
  item.load_started = now;
  item.loaded_once = true;
  item.good = item.hit;
  item.from_disk.assign(item.hit, false);
  item.ranks_pending = settings_.ranks;
  ++loads_active_;
  std::vector<KeyItem> keys;
  for (std::int64_t r = 0; r < settings_.ranks; ++r) {
    keys.clear();
    for (std::size_t b = item.gpu_hit; b < item.hit; ++b)
      keys.push_back({key_of(item.request.block_ids[b], r), bytes_of(b)});
    const auto node = static_cast<NodeId>(index(first_node_) + static_cast<std::uint32_t>(r));
    cluster.get(node, token(slot, kLoad, r), keys, now,
                settings_.block_tokens * static_cast<std::int64_t>(item.hit - item.gpu_hit));
  }
}

void Engine::on_rank_loaded(std::uint32_t slot, std::int64_t rank, const OpResult& result, Time now) {
  (void)rank;
  Item& item = items_[slot];
  std::size_t good = item.gpu_hit;
  if (result.error == Error::OK) {
    for (const KeyOutcome& key : result.keys) {
      if (key.error != Error::OK) break;
      if (key.tier == Tier::disk) item.from_disk[good] = true;
      ++good;
    }
  }
  item.good = std::min(item.good, good);
  if (--item.ranks_pending == 0) end_load(slot, result, now);
}

/// The last rank is there. Its own times are the critical path, since all ranks began together.
void Engine::end_load(std::uint32_t slot, const OpResult& last, Time now) {
  Item& item = items_[slot];
  --loads_active_;
  item.needs_load = false;
  RequestRecord& record = item.record;
  const Duration elapsed = now - item.load_started;
  if (last.error == Error::OK) {
    record.wait_promotion = record.wait_promotion + last.wait_promotion;
    record.load_ssd = record.load_ssd + last.load_ssd;
    record.load_dram = record.load_dram + (elapsed - last.wait_promotion - last.load_ssd);
  } else {
    record.load_ssd = record.load_ssd + elapsed;
  }
  if (item.good < item.hit) record.load_failed = true;
  const std::int64_t block = settings_.block_tokens.value;
  for (std::size_t b = item.gpu_hit; b < item.good; ++b)
    (item.from_disk[b] ? record.hit_ssd : record.hit_dram).value += block;
  item.computed = {block * static_cast<std::int64_t>(item.good)};
  item.state = State::ready;
}

// -- results --------------------------------------------------------------------------------------------------

void Engine::on_result(const OpResult& result, Time now, Cluster& cluster) {
  (void)cluster;
  const auto bits = static_cast<std::uint64_t>(result.token);
  const auto slot = static_cast<std::uint32_t>(bits);
  const auto kind = static_cast<std::uint32_t>(bits >> 44) & 0xf;
  const auto rank = static_cast<std::int64_t>(bits >> 32 & 0xfff);
  if (kind == kSave) {
    --open_saves_;
    return;
  }
  changed_ = true;
  if (kind == kProbe) {
    after_probe(slot, &result);
  } else {
    on_rank_loaded(slot, rank, result, now);
  }
}

// -- steps ----------------------------------------------------------------------------------------------------

/// The scheduler's own look at waiting requests, when they are not probed on arrival. True while answers are due.
bool Engine::probe_when_scheduled(Time now, Cluster& cluster) {
  std::int64_t places = settings_.max_num_seqs - static_cast<std::int64_t>(running_.size());
  bool pending = false;
  for (const std::uint32_t slot : waiting_) {
    if (places-- <= 0) break;
    Item& item = items_[slot];
    if (item.state == State::waiting && !item.needs_load && !item.loaded_once) start_probe(slot, now, cluster);
    pending = pending || item.state == State::probing;
  }
  return pending;
}

void Engine::continue_work(Time now, Cluster& cluster) {
  if (!changed_) return;
  changed_ = false;
  if (!step_active_) {
    if (!settings_.probe_at_arrival && probe_when_scheduled(now, cluster)) return;
    plan_step(now);
  } else if (steps_ > 1 && someone_may_enter()) {
    cut_decode_run(now);
  }
  // Loads that the step waits for, or that go on aside.
  if (settings_.load == EngineSettings::Load::blocks_step) {
    while (step_load_next_ < step_loads_.size() && loads_active_ < settings_.loads_at_once)
      start_load(step_loads_[step_load_next_++], now, cluster);
    const bool waits = std::any_of(step_loads_.begin(), step_loads_.end(), [this](std::uint32_t s) {
      return items_[s].state == State::waiting || items_[s].state == State::loading;
    });
    if (step_active_ && !step_loads_.empty() && !waits) {
      step_loads_.clear();
      step_load_next_ = 0;
      start_compute(now);
    }
    return;
  }
  std::int64_t places = settings_.max_num_seqs - static_cast<std::int64_t>(running_.size()) - loads_active_;
  for (const std::uint32_t slot : waiting_) {
    if (places <= 0 || loads_active_ >= settings_.loads_at_once) break;
    Item& item = items_[slot];
    if (item.state == State::ready || item.state == State::probing) --places;
    if (item.state != State::waiting || !item.needs_load) continue;
    start_load(slot, now, cluster);
    --places;
  }
}

/// Chooses what the next step does: every decode, unfinished prefills, then waiting requests in order.
void Engine::plan_step(Time now) {
  std::int64_t budget = settings_.max_num_batched_tokens.value;
  bool work = false;
  for (const std::uint32_t slot : running_) {
    if (items_[slot].state == State::decoding) --budget, work = true;
  }
  for (const std::uint32_t slot : running_) {
    Item& item = items_[slot];
    item.chunk = {};
    if (item.state != State::prefilling || budget <= 0) continue;
    item.chunk = {std::min(budget, missing(item).value)};
    budget -= item.chunk.value;
    work = true;
  }
  const bool blocking = settings_.load == EngineSettings::Load::blocks_step;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (static_cast<std::int64_t>(running_.size()) >= settings_.max_num_seqs || budget <= 0) break;
    Item& item = items_[*it];
    const bool admissible = item.state == State::ready || (blocking && item.state == State::waiting && item.needs_load);
    if (!admissible) {
      ++it;
      continue;
    }
    if (item.needs_load) {
      step_loads_.push_back(*it);
      item.computed = settings_.block_tokens * static_cast<std::int64_t>(item.hit);  // what the load promises
    } else {
      item.state = State::prefilling;
    }
    item.chunk = {std::min(budget, missing(item).value)};
    budget -= item.chunk.value;
    running_.push_back(*it);
    it = waiting_.erase(it);
    work = true;
  }
  if (!work) return;
  step_active_ = true;
  if (step_loads_.empty()) start_compute(now);
}

void Engine::start_compute(Time now) {
  double ns = static_cast<double>(settings_.step_base.ns);
  std::int64_t run = kNever.ns;  // steps until the first request ends, while all decode
  for (const std::uint32_t slot : running_) {
    const Item& item = items_[slot];
    if (item.state == State::decoding) {
      ns += settings_.decode_ns_per_sequence;
      run = std::min(run, item.request.output.value - item.generated.value);
    } else {
      const auto tokens = static_cast<double>(item.chunk.value);
      const double context = static_cast<double>(item.computed.value) + tokens / 2;
      ns += settings_.prefill_ns_per_token * tokens + settings_.prefill_ns_per_token_pair * tokens * context;
      run = 1;
    }
  }
  step_span_ = {static_cast<std::int64_t>(ns)};
  steps_ = step_span_.ns > 0 && !someone_may_enter() ? std::max<std::int64_t>(run, 1) : 1;
  compute_span_ = {step_span_.ns * steps_};
  run_started_ = now;
  compute_due_ = true;
}

/// True when the next step could admit, or would look for, a request that waits.
bool Engine::someone_may_enter() const {
  if (waiting_.empty() || static_cast<std::int64_t>(running_.size()) >= settings_.max_num_seqs) return false;
  if (!settings_.probe_at_arrival) return true;
  const bool blocking = settings_.load == EngineSettings::Load::blocks_step;
  return std::any_of(waiting_.begin(), waiting_.end(), [&](std::uint32_t slot) {
    return items_[slot].state == State::ready || (blocking && items_[slot].state == State::waiting);
  });
}

/// Ends the run with the step under way.
void Engine::cut_decode_run(Time now) {
  const Duration elapsed = now - run_started_;
  const std::int64_t begun = std::max<std::int64_t>(1, (elapsed.ns + step_span_.ns - 1) / step_span_.ns);
  if (begun >= steps_) return;
  steps_ = begun;
  compute_span_ = run_started_ + Duration{step_span_.ns * begun} - now;
  compute_due_ = true;
}

bool Engine::take_compute(Duration& span) {
  if (!compute_due_) return false;
  compute_due_ = false;
  span = compute_span_;
  return true;
}

void Engine::on_step_computed(Time now, Cluster& cluster) {
  step_active_ = false;
  changed_ = true;
  const std::vector<std::uint32_t> stepped = running_;
  std::vector<std::uint32_t> again;  // their load failed: back to the head of the queue
  for (const std::uint32_t slot : stepped) {
    Item& item = items_[slot];
    if (item.state == State::decoding) {
      item.generated.value += steps_;
      if (item.generated.value >= item.request.output.value) finish(slot, now);
      continue;
    }
    if (item.chunk.value == 0) continue;
    if (item.state == State::ready) {  // admitted by this step with a load, which has ended
      if (item.good < item.hit) {      // the step's work on it is void
        item.chunk = {};
        again.push_back(slot);
        continue;
      }
      item.state = State::prefilling;
    }
    item.compute = item.compute + step_span_;
    item.computed += item.chunk;
    item.chunk = {};
    if (item.computed < item.request.input) continue;
    first_token(slot, now, cluster);
    if (item.generated.value >= item.request.output.value) finish(slot, now);
  }
  std::erase_if(running_, [this](std::uint32_t s) { return !items_[s].live || items_[s].state == State::ready; });
  for (auto it = again.rbegin(); it != again.rend(); ++it) {
    items_[*it].hit = items_[*it].good;
    waiting_.push_front(*it);
  }
}

void Engine::first_token(std::uint32_t slot, Time now, Cluster& cluster) {
  Item& item = items_[slot];
  RequestRecord& record = item.record;
  item.state = State::decoding;
  item.generated = {1};
  record.first_token = now;
  record.first_step = settings_.step_base;
  record.prefill = item.compute - settings_.step_base;
  record.queue = now - record.arrival - record.load_dram - record.load_ssd - record.wait_promotion - record.prefill -
                 record.first_step;
  gpu_.insert(item.request.block_ids, item.blocks);
  if (settings_.save_after_prefill) save(slot, now, cluster);
}

/// Puts the blocks that were computed; with shared keys the ranks divide them.
void Engine::save(std::uint32_t slot, Time now, Cluster& cluster) {
  const Item& item = items_[slot];
  for (std::int64_t r = 0; r < settings_.ranks; ++r) {
    std::vector<KeyItem> keys;
    for (std::size_t b = std::max(item.good, item.gpu_hit); b < item.blocks; ++b) {
      if (settings_.ranks_share_keys && static_cast<std::int64_t>(b) % settings_.ranks != r) continue;
      keys.push_back({key_of(item.request.block_ids[b], r), bytes_of(b)});
    }
    if (keys.empty()) continue;
    ++open_saves_;
    cluster.put(static_cast<NodeId>(index(first_node_) + static_cast<std::uint32_t>(r)), token(slot, kSave, r), keys,
                now);
  }
}

void Engine::finish(std::uint32_t slot, Time now) {
  Item& item = items_[slot];
  item.record.finish = now;
  finished_.push_back({item.record, item.client});
  --open_requests_;
  items_.release(slot);
}

}  // namespace kvlift
