#include "real/executor.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/assert.hpp"
#include "core/cluster.hpp"
#include "real/error.hpp"
#include "real/local_link.hpp"
#include "real/payload.hpp"

namespace kvlift::real {
namespace {

/// Room for KV on its way from or to the accelerator of one node; transfers wait for it.
constexpr std::uint64_t kUserBytes = 64ULL << 20;

std::int64_t machine_clock() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t pages(Bytes bytes) { return paged(static_cast<std::uint64_t>(bytes.value)); }

/// Open files that the process may have, with some left for others.
unsigned files_max() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<unsigned>(std::clamp<rlim_t>(limit.rlim_cur, 128, 8192 + 64)) - 64;
}

SsdStoreSettings store_settings(const HolderSettings& holder, const RealOptions& options) {
  // Segments as long as buckets, so that a bucket that is evicted takes its file with it.
  SsdStoreSettings settings;
  const std::uint64_t bucket = pages(holder.bucket_bytes) + kPage * static_cast<std::uint64_t>(holder.bucket_keys);
  settings.segment_bytes = std::clamp<std::uint64_t>(bucket, 16ULL << 20, 1ULL << 30);
  settings.sync = options.sync;
  return settings;
}

}  // namespace

Executor::Executor(const RunPlan& plan, const RealOptions& options, const std::string& folder) : options_(options) {
  KVLIFT_ASSERT(plan.places);
  Bytes object{plan.engine.block_tokens.value * plan.engine.bytes_per_token.value};
  for (const Bytes block : plan.workload.block_bytes) object = std::max(object, block);
  const std::uint64_t user = std::max(kUserBytes, 4 * pages(object));
  std::uint64_t bytes = 0;
  for (const ClusterPlan::NodePlan& node : nodes_of(plan.platform)) {
    Node place{.user_room = RangeAllocator({static_cast<std::int64_t>(user)})};
    place.segment = bytes;
    place.staging = place.segment + pages(node.segment_bytes);
    place.user = place.staging + pages(plan.store.holder.staging_bytes);
    bytes = place.user + user;
    nodes_.push_back(std::move(place));
  }
  arena_ = std::make_unique<Arena>(bytes);
  RingSettings ring;
  ring.strict = options.strict;
  ring_ = open_ring(ring, files_max(), [this](const std::string& line) { steps_.push_back(line); });
  const Memory memory = arena_->memory();
  ring_->register_memory({&memory, 1});
  stores_ = std::make_unique<SsdStores>(*ring_);
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    stores_->open(folder + "/node-" + std::to_string(n), store_settings(plan.store.holder, options));
  link_ = std::make_unique<LocalLink>(memory, memory);
  const StandIn::Parts& parts = options.stand_in;
  if (parts.ssd || parts.memory_and_links || parts.calls)
    stand_in_ = std::make_unique<StandIn>(plan.platform, options.stand_in);
  prctl(PR_SET_TIMERSLACK, 1UL);  // the waits of this thread end when they are asked to
}

Executor::~Executor() { drain(); }

Time Executor::now() {
  const auto passed = static_cast<double>(machine_clock() - origin_) * options_.time_scale;
  last_ = std::max(last_, Time{static_cast<std::int64_t>(passed)});
  return last_;
}

void Executor::run(World& world) {
  origin_ = machine_clock();
  last_ = Time{};
  world.start(now());
  take(world);
  while (!world.done()) {
    if (!poll()) {
      ring_->quiet();
      if (!poll()) {
        wait();
        continue;
      }
    }
    deliver(world);
  }
  drain();
}

void Executor::take(World& world) {
  for (const Forgotten& f : world.places().forgotten) (*stores_)[index(f.node)].forget(f.key, f.version);
  const std::span<const Extent> extents = world.places().extents;
  for (const Effect& effect : world.effects()) begin(effect, extents.subspan(effect.first_extent, effect.extents));
  world.effects().clear();
  world.places().clear();
  pump_transfers();
}

void Executor::begin(const Effect& effect, std::span<const Extent> extents) {
  const std::uint32_t r = running_.acquire();
  running_[r] = {.live = true, .effect = effect, .extents = {extents.begin(), extents.end()}};
  Running& running = running_[r];
  if (effect.kind == EffectKind::timer || effect.kind == EffectKind::compute) {
    alarms_.push(effect.kind == EffectKind::timer ? effect.at : now() + effect.span, r);
    return;
  }
  running.stands_in = stand_in_ && stand_in_->begin(effect, now());
  if (running.stands_in) by_effect_[effect.id] = r;
  running.real = !extents.empty();
  if (!running.real) return over_if_both(r);
  if (effect.kind == EffectKind::transfer) {
    waiting_.push_back(r);
  } else {
    begin_disk(r);
  }
}

std::uint64_t Executor::offset_of(const Place& place) const {
  const Node& node = nodes_[index(place.node)];
  const auto offset = static_cast<std::uint64_t>(place.offset);
  // A staged object stands behind the header that was read together with it.
  return place.kind == Place::Kind::staging ? node.staging + offset + kPage : node.segment + offset;
}

void Executor::begin_disk(std::uint32_t r) {
  const Running& running = running_[r];
  const bool reads = running.effect.kind == EffectKind::disk_read;
  std::vector<SsdItem> items;
  for (const Extent& e : running.extents)
    items.push_back({e.key, e.version, arena_->data() + offset_of(reads ? e.to : e.from),
                     static_cast<std::uint64_t>(e.size.value)});
  SsdStore& store = (*stores_)[index(running.effect.node)];
  if (reads) {
    store.read(r, items, running.effect.background);
  } else {
    store.write(r, items);
  }
}

void Executor::disk_over(NodeId node, const SsdDone& done) {
  const auto r = static_cast<std::uint32_t>(done.token);
  Running& running = running_[r];
  const bool reads = running.effect.kind == EffectKind::disk_read;
  for (const Extent& e : running.extents) running.arrived += e.size;
  for (const auto& [i, error] : done.failed) {
    running.arrived -= running.extents[i].size;
    running.failed.push_back(i);
  }
  if (!done.failed.empty() && (!reads || done.failed.size() == running.extents.size())) {
    running.error = done.failed.front().second;
    running.failed.clear();
    // Core takes a bucket as written or not; the part that was is of no use to it.
    for (const Extent& e : running.extents) {
      if (!reads) (*stores_)[index(node)].forget(e.key, e.version);
    }
  }
  real_over(r);
}

const Place* Executor::user_end(const Extent& extent) {
  if (extent.from.kind == Place::Kind::user) return &extent.from;
  return extent.to.kind == Place::Kind::user ? &extent.to : nullptr;
}

bool Executor::begin_copy(std::uint32_t r) {
  Running& running = running_[r];
  const Extent& extent = running.extents[running.next];
  const auto bytes = static_cast<std::uint64_t>(extent.size.value);
  const Place* user = user_end(extent);
  Copy copy{.live = true, .running = r, .extent = running.next};
  std::uint64_t user_at = 0;
  if (user != nullptr) {
    Node& node = nodes_[index(user->node)];
    if (extent.size > node.user_room.capacity())
      throw RealError("an object of " + std::to_string(bytes) + " bytes is larger than this driver's room for one");
    const auto room = node.user_room.allocate(extent.size);
    if (!room) return false;
    copy.user_offset = *room;
    user_at = node.user + static_cast<std::uint64_t>(*room);
    if (user == &extent.from) mark(extent.key, arena_->data() + user_at, bytes);
  }
  const std::uint32_t c = copies_.acquire();
  const Transfer transfer{.token = c,
                          .local = user == &extent.from ? user_at : offset_of(extent.from),
                          .remote = user == &extent.to ? user_at : offset_of(extent.to),
                          .bytes = bytes};
  if (!link_->post(transfer)) {
    if (user != nullptr) nodes_[index(user->node)].user_room.release(copy.user_offset, extent.size);
    copies_.release(c);
    return false;
  }
  copies_[c] = copy;
  if (user == &extent.from) ++counters_.marked;
  ++running.next;
  ++running.open;
  return true;
}

void Executor::pump_transfers() {
  std::vector<bool> full(nodes_.size());
  std::erase_if(waiting_, [&](std::uint32_t r) {
    const Running& running = running_[r];
    const NodeId node = running.effect.accelerator == NodeId::none ? running.effect.node : running.effect.accelerator;
    while (!full[index(node)] && running.next < running.extents.size()) full[index(node)] = !begin_copy(r);
    return running.next == running.extents.size();
  });
}

void Executor::copy_over(const TransferDone& done) {
  const auto c = static_cast<std::uint32_t>(done.token);
  const Copy copy = copies_[c];
  copies_.release(c);
  Running& running = running_[copy.running];
  const Extent& extent = running.extents[copy.extent];
  Error error = done.error;
  if (const Place* user = user_end(extent); user != nullptr) {
    Node& node = nodes_[index(user->node)];
    if (user == &extent.to && error == Error::OK) {
      ++counters_.arrived;
      const std::byte* data = arena_->data() + node.user + copy.user_offset;
      if (!marked(extent.key, data, static_cast<std::uint64_t>(extent.size.value)))
        error = Error::TRANSFER_FAIL, ++counters_.wrong_bytes;
    }
    node.user_room.release(copy.user_offset, extent.size);
  }
  if (error == Error::OK) running.arrived += extent.size;
  if (error != Error::OK && running.error == Error::OK) running.error = error;
  --running.open;
  if (running.open == 0 && running.next == running.extents.size()) real_over(copy.running);
}

void Executor::real_over(std::uint32_t r) {
  running_[r].real = false;
  over_if_both(r);
}

void Executor::over_if_both(std::uint32_t r) {
  if (!running_[r].real && !running_[r].stands_in) ready_.push_back(r);
}

bool Executor::poll() {
  const Time t = now();
  if (stand_in_) {
    stood_in_.clear();
    stand_in_->advance(t, stood_in_);
    for (const EffectId id : stood_in_) {
      const auto at = by_effect_.find(id);
      const std::uint32_t r = at->second;
      by_effect_.erase(at);
      running_[r].stands_in = false;
      over_if_both(r);
    }
  }
  std::uint32_t due = 0;
  while (alarms_.take(t, due)) ready_.push_back(due);
  disks_done_.clear();
  stores_->poll(t, disks_done_);
  for (const SsdStores::Finished& f : disks_done_) disk_over(static_cast<NodeId>(f.store), f.done);
  copies_done_.clear();
  link_->poll(copies_done_);
  for (const TransferDone& done : copies_done_) copy_over(done);
  if (!copies_done_.empty()) pump_transfers();
  return !ready_.empty();
}

void Executor::wait() {
  Time next = alarms_.next();
  if (stand_in_) next = std::min(next, stand_in_->next());
  const double left = std::max(0.0, static_cast<double>((next - now()).ns) / options_.time_scale);
  const auto ns = static_cast<std::int64_t>(std::min(left, 1e9));
  const timespec timeout{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  std::array<pollfd, 2> sources{pollfd{.fd = ring_->ready_fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = link_->ready_fd(), .events = POLLIN, .revents = 0}};
  ++counters_.waits;
  ppoll(sources.data(), sources.size(), &timeout, nullptr);
}

void Executor::deliver(World& world) {
  while (!ready_.empty() && !world.done()) {
    const std::uint32_t r = ready_.front();
    ready_.pop_front();
    Running& running = running_[r];
    const std::vector<std::uint32_t> failed = std::move(running.failed);
    const EffectKind kind = running.effect.kind;
    const bool moves = kind == EffectKind::disk_read || kind == EffectKind::disk_write || kind == EffectKind::transfer;
    const Completion completion{.id = running.effect.id,
                                .error = running.error,
                                .bytes = moves && running.error == Error::OK ? running.arrived : Bytes{},
                                .failed = failed};
    running_.release(r);
    world.on(completion, now());
    take(world);
  }
}

void Executor::drain() {
  waiting_.clear();
  alarms_.clear();
  stand_in_.reset();
  while (copies_.live() > 0 || !stores_->quiet()) {
    ring_->quiet();
    if (!poll()) wait();
    ready_.clear();
  }
}

std::vector<std::pair<std::string, std::string>> Executor::describe() const {
  utsname system{};
  uname(&system);
  SsdCounters ssd;
  for (std::size_t n = 0; n < stores_->size(); ++n) {
    const SsdCounters& one = (*stores_)[n].counters();
    ssd.bytes_read += one.bytes_read;
    ssd.bytes_written += one.bytes_written;
    ssd.mismatches += one.mismatches;
  }
  const RingCounters& ring = ring_->counters();
  const auto count = [](std::uint64_t n, const char* what) { return std::to_string(n) + what; };
  std::vector<std::pair<std::string, std::string>> lines{
      {"kernel", std::string(system.sysname) + " " + system.release},
      {"ssd engine", ring_->describe()},
      {"ssd writes", options_.sync ? "answered after fdatasync" : "answered without fdatasync"},
      {"ssd work", count(ssd.bytes_read >> 20, " MiB read, ") + count(ssd.bytes_written >> 20, " MiB written, ") +
                       count(ring.requests, " requests, ") + count(ring.fixed_pieces, " of ") +
                       count(ring.pieces, " pieces through registered buffers, ") + count(ring.retries, " retries, ") +
                       count(ring.short_pieces, " short, ") + count(ring_->submit_calls(), " system calls")},
      {"memory", arena_->describe()},
      {"link", link_->describe()},
      {"objects", count(counters_.marked, " put, ") + count(counters_.arrived, " delivered, ") +
                      count(counters_.wrong_bytes, " of them with other bytes, ") +
                      count(ssd.mismatches, " damaged on SSD")}};
  for (const std::string& step : steps_) lines.emplace_back("stepped down", step);
  return lines;
}

}  // namespace kvlift::real
