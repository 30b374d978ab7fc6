// Dispatch of completions, emission of effects, life and death of processes.
#include "core/cluster.hpp"

#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

namespace {

constexpr int kComponentShift = 56;
constexpr int kSlotShift = 32;
constexpr std::uint32_t kSlotMask = 0xffffff;

EffectId make_id(Component component, std::uint32_t slot, std::uint32_t sequence) {
  KVLIFT_ASSERT(slot <= kSlotMask);
  return static_cast<EffectId>(static_cast<std::uint64_t>(component) << kComponentShift |
                               static_cast<std::uint64_t>(slot) << kSlotShift | sequence);
}

}  // namespace

std::vector<ClusterPlan::NodePlan> nodes_of(const PlatformSettings& platform) {
  std::vector<ClusterPlan::NodePlan> nodes;
  std::uint32_t host = 0;
  for (const HostSettings& kind : platform.hosts) {
    for (std::int64_t h = 0; h < kind.count; ++h, ++host) {
      for (std::int64_t n = 0; n < kind.nodes; ++n)
        nodes.push_back({host, kind.segment_bytes, kind.ssd.page_cache_bytes});
    }
  }
  return nodes;
}

NodeState::NodeState(const ClusterPlan::NodePlan& node, const ClusterPlan& plan)
    : host(node.host),
      segment_bytes(node.segment_bytes),
      throttle({plan.store.client.ssd_prefetch_dedup_ttl, plan.store.client.ssd_prefetch_cooldown,
                plan.store.master.put_start_release_timeout,
                static_cast<std::size_t>(plan.store.client.throttle_entries_max), 1 << 16}),
      staging(plan.store.holder.staging_bytes, plan.policy.staged_reuse != Policy::StagedReuse::none,
              plan.policy.staged_reuse == Policy::StagedReuse::until_needed),
      ssd(plan.store.holder.ssd_bytes, plan.store.holder.ssd_keys, plan.store.holder.ssd_eviction) {}

void NodeState::reset_process(const ClusterPlan& plan) {
  NodeState fresh({.host = host, .segment_bytes = segment_bytes}, plan);
  fresh.epoch = epoch;
  fresh.ssd = std::move(ssd);
  *this = std::move(fresh);
}

namespace {

/// Without pings nobody can tell a silent client from a dead one, so none expires.
MasterSettings with_liveness(const StoreSettings& store) {
  MasterSettings settings = store.master;
  if (store.client.ping_period.ns <= 0) settings.client_ttl = kForever;
  return settings;
}

}  // namespace

Cluster::State::State(const ClusterPlan& p)
    : plan(p), master(with_liveness(p.store), p.store.legacy, p.policy, p.seed) {
  nodes.reserve(plan.nodes.size());
  for (const ClusterPlan::NodePlan& n : plan.nodes) {
    nodes.emplace_back(n, plan);
    if (plan.places) nodes.back().ssd.note_forgotten();
    while (page_caches.size() <= n.host) page_caches.emplace_back(n.page_cache_bytes);
  }
  offloads.resize(nodes.size());
  pulls.resize(nodes.size() * static_cast<std::size_t>(plan.policy.pull_workers));
  pings.resize(nodes.size());
  joins.resize(nodes.size());
}

// -- effects ------------------------------------------------------------------------------------------------

std::uint32_t Cluster::State::emit(Component component, std::uint32_t slot, Effect effect) {
  if (++next_sequence == 0) ++next_sequence;  // 0 means "waits for nothing"
  effect.id = make_id(component, slot, next_sequence);
  effects.push_back(effect);
  return next_sequence;
}

/// Tells the driver what left the SSDs; the master was told before.
void Cluster::State::note_forgotten() {
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    for (const SsdIndex::Object& object : nodes[n].ssd.take_forgotten())
      places.forgotten.push_back({static_cast<NodeId>(n), object.key, object.version});
  }
}

void Cluster::State::begin(Operation& op, NodeId n) {
  op.node = n;
  op.epoch = node(n).epoch;
  op.waits_for = 0;
  op.answered = false;
  op.answer = Error::OK;
}

void Cluster::State::call(Component component, std::uint32_t slot, Operation& op, NodeId peer, std::size_t keys) {
  op.answered = false;
  switch (component) {
    case Component::probe:
    case Component::get:
    case Component::staged_read:
      ++counters.rpcs_on_path;
      break;
    case Component::route:
      ++(routes[slot].state == RouteOp::State::looking_up ? counters.rpcs_on_path : counters.rpcs_off_path);
      break;
    default:
      ++counters.rpcs_off_path;
      break;
  }
  op.waits_for = emit(
      component, slot,
      {.kind = EffectKind::rpc_request, .node = op.node, .peer = peer, .requests = static_cast<std::int32_t>(keys)});
}

void Cluster::State::reply(Component component, std::uint32_t slot, Operation& op, NodeId peer) {
  op.answered = true;
  op.waits_for = emit(component, slot, {.kind = EffectKind::rpc_reply, .node = peer, .peer = op.node});
}

void Cluster::State::sleep(Component component, std::uint32_t slot, Operation& op, Time until) {
  op.waits_for = emit(component, slot, {.kind = EffectKind::timer, .node = op.node, .at = until});
}

void Cluster::State::schedule_tick(Time now) {
  const Time due = master.next_tick(now);
  if (due == kNever) {
    tick_waits_for = 0;
    tick_at = kNever;
    return;
  }
  if (tick_waits_for != 0 && tick_at <= due) return;  // an early tick finds nothing and asks again
  tick_at = due;
  tick_waits_for = emit(Component::master_tick, 0, {.kind = EffectKind::timer, .node = kMasterNode, .at = due});
}

void Cluster::State::on(const Completion& c, Time now) {
  const auto id = static_cast<std::uint64_t>(c.id);
  const auto component = static_cast<Component>(id >> kComponentShift);
  const auto slot = static_cast<std::uint32_t>(id >> kSlotShift) & kSlotMask;
  const auto sequence = static_cast<std::uint32_t>(id);
  // True when the operation in that slot waits for this very effect.
  const auto awaited = [&](auto& table) {
    if (slot < table.size() && table[slot].live && table[slot].waits_for == sequence) {
      table[slot].waits_for = 0;
      return true;
    }
    ++counters.stale_completions;
    return false;
  };
  switch (component) {
    case Component::probe:
      if (awaited(probes)) on_probe(slot, c, now);
      break;
    case Component::get:
      if (slot < gets.size() && gets[slot].live) on_get(slot, sequence, c, now);
      break;
    case Component::get_deadline:
      if (slot < gets.size() && gets[slot].live && gets[slot].timer == sequence) on_get_deadline(slot, now);
      break;
    case Component::staged_read:
      if (awaited(staged_reads)) on_staged_read(slot, c, now);
      break;
    case Component::put:
      if (slot < puts.size() && puts[slot].live) on_put(slot, sequence, c, now);
      break;
    case Component::remove:
      if (awaited(removes)) on_remove(slot, c, now);
      break;
    case Component::job:
      if (awaited(jobs)) on_job(slot, c, now);
      break;
    case Component::offload:
      if (awaited(offloads)) on_offload(slot, c, now);
      break;
    case Component::on_hit:
      if (awaited(pulls)) on_pull(slot, c, now);
      break;
    case Component::route:
      if (awaited(routes)) on_route(slot, c, now);
      break;
    case Component::ping:
      if (awaited(pings)) on_ping(slot, c, now);
      break;
    case Component::join:
      if (awaited(joins)) on_join(slot, c, now);
      break;
    case Component::master_tick:
      if (tick_waits_for == sequence) {
        tick_waits_for = 0;
        tick_at = kNever;
        master.tick(now);
      }
      break;
    case Component::none:
    case Component::user:
      ++counters.stale_completions;
      break;
  }
  if (plan.places) note_forgotten();
  schedule_tick(now);
}

OpResult& Cluster::State::result(OpResult::Kind kind, OpToken token, NodeId n, Error error) {
  --open_operations;
  OpResult& r = results.emplace_back();
  r.kind = kind;
  r.token = token;
  r.node = n;
  r.error = error;
  return r;
}

// -- processes ----------------------------------------------------------------------------------------------

void Cluster::State::start(Time now) {
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const auto id = static_cast<NodeId>(n);
    master.register_client(id, nodes[n].epoch, now);
    const auto mounted = master.mount_segment(id, nodes[n].segment_bytes, now);
    KVLIFT_ASSERT(mounted.ok() || nodes[n].segment_bytes.value == 0);
    nodes[n].segment = mounted.ok() ? mounted.value : SegmentId::none;
    KVLIFT_ASSERT(master.mount_disk(id, true, now) == Error::OK);
    joins[n].live = true;
    begin(pings[n], id);
    start_periodic_work(id, now);
    pings[n].live = plan.store.client.ping_period.ns > 0;
    if (pings[n].live) sleep(Component::ping, n, pings[n], now + plan.store.client.ping_period);
  }
  schedule_tick(now);
}

void Cluster::State::crash(NodeId n, Time now) {
  NodeState& dead = node(n);
  if (!dead.alive) return;
  dead.alive = false;
  // Queued work of the process is gone with it; readers of other nodes learn it as a call that is not answered.
  for (auto* waiters : {&dead.prefetch_queue, &dead.yielding}) {
    for (const std::uint32_t slot : *waiters) jobs.release(slot);
    waiters->clear();
  }
  const auto refuse_reader = [&](std::uint32_t slot) {
    StagedReadOp& op = staged_reads[slot];
    op.state = StagedReadOp::State::refused;
    op.has_worker = false;
    op.answer = Error::RPC_TIMEOUT;
    sleep(Component::staged_read, slot, op, now + plan.store.client.rpc_timeout);
  };
  for (auto* waiters : {&dead.worker_waiters, &dead.staging_waiters}) {
    for (const std::uint32_t slot : *waiters) refuse_reader(slot);
    waiters->clear();
  }
  for (const StagingWaiter waiter : dead.staging.take_waiters()) {
    const Borrower borrower = borrower_of(waiter);
    if (borrower.component == Component::job) jobs.release(borrower.slot);  // the pulls end below
    // A reader that waits for a read of its own too, or was refused already, learns it then.
    if (borrower.component == Component::staged_read && staged_reads[borrower.slot].waits_for == 0)
      refuse_reader(borrower.slot);
  }
  for (std::uint32_t get = 0; get < gets.size(); ++get) {  // nobody is left to wake them
    const GetOp& op = gets[get];
    if (op.live && op.node == n && op.state == GetOp::State::waiting) get_start_timer(get, {0}, now);
  }
  const auto slot = index(n);
  offloads[slot].live = pings[slot].live = joins[slot].live = false;
  for (std::int64_t w = 0; w < plan.policy.pull_workers; ++w)
    pulls[first_puller(n) + static_cast<std::uint32_t>(w)].live = false;
}

void Cluster::State::restart(NodeId n, Time now) {
  NodeState& born = node(n);
  KVLIFT_ASSERT(!born.alive);
  ++born.epoch;
  born.reset_process(plan);
  const auto slot = index(n);
  offloads[slot] = OffloadOp{};
  pings[slot] = PingOp{};
  joins[slot] = JoinOp{};
  joins[slot].live = true;
  begin(pings[slot], n);
  join(n, now);
}

// -- the shadow of DRAM: which object's bytes stand whole at which place ---------------------------------------

void Cluster::State::shadow_begin_write(const Allocation& at) {
  if (!plan.verify) return;
  const std::int64_t end = at.offset + at.size.value;
  auto it = shadow.lower_bound({index(at.segment), at.offset});
  if (it != shadow.begin()) {
    const auto before = std::prev(it);
    if (before->first.first == index(at.segment) && before->first.second + before->second.first > at.offset)
      it = before;
  }
  while (it != shadow.end() && it->first.first == index(at.segment) && it->first.second < end) it = shadow.erase(it);
}

void Cluster::State::shadow_end_write(const Allocation& at, const ObjectKey& key) {
  if (!plan.verify) return;
  shadow_begin_write(at);  // what two writers wrote at the same time belongs to the last one only if whole
  shadow[{index(at.segment), at.offset}] = {at.size.value, key};
}

bool Cluster::State::shadow_holds(const Allocation& at, const ObjectKey& key) const {
  const auto it = shadow.find({index(at.segment), at.offset});
  return it != shadow.end() && it->second.second == key && it->second.first == at.size.value;
}

// -- the public face ------------------------------------------------------------------------------------------

Cluster::Cluster(const ClusterPlan& plan) : state_(std::make_unique<State>(plan)) {}
Cluster::~Cluster() = default;
Cluster::Cluster(const Cluster& other) : state_(std::make_unique<State>(*other.state_)) {}
Cluster& Cluster::operator=(const Cluster& other) {
  *state_ = *other.state_;
  return *this;
}
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::start(Time now) { state_->start(now); }
void Cluster::on(const Completion& completion, Time now) { state_->on(completion, now); }
Effects& Cluster::effects() { return state_->effects; }
Places& Cluster::places() { return state_->places; }
std::vector<OpResult>& Cluster::results() { return state_->results; }
void Cluster::crash(NodeId node, Time now) {
  state_->crash(node, now);
  state_->schedule_tick(now);
}
void Cluster::restart(NodeId node, Time now) { state_->restart(node, now); }
bool Cluster::alive(NodeId node) const { return state_->nodes[index(node)].alive; }
void Cluster::restart_master(bool from_snapshot, Time now) {
  state_->master.restart(from_snapshot, now);
  state_->schedule_tick(now);
}
const Master& Cluster::master() const { return state_->master; }
const ClusterCounters& Cluster::counters() const { return state_->counters; }
std::int64_t Cluster::open_operations() const { return state_->open_operations; }

bool Cluster::quiet() const {
  const State& s = *state_;
  return s.open_operations == 0 && s.jobs.live() == 0 && s.routes.live() == 0 && s.staged_reads.live() == 0 &&
         s.master.promotions_in_flight() == 0;
}

std::string Cluster::pending() const {
  const State& s = *state_;
  const auto count = [](const char* what, std::int64_t n) {
    return n == 0 ? std::string() : std::to_string(n) + " " + what + " ";
  };
  return count("probes", s.probes.live()) + count("gets", s.gets.live()) + count("puts", s.puts.live()) +
         count("removes", s.removes.live()) + count("staged reads", s.staged_reads.live()) +
         count("routes", s.routes.live()) + count("jobs", s.jobs.live()) +
         count("promotion tasks", s.master.promotions_in_flight());
}

std::string Cluster::check(Time now) const {
  const State& s = *state_;
  if (s.counters.corrupt_reads != 0) return "I4: a read delivered bytes of another object";
  for (std::uint32_t n = 0; n < s.nodes.size(); ++n) {
    const NodeState& node = s.nodes[n];
    const std::string at = " at node " + std::to_string(n);
    if (node.prefetch_active < 0 || node.prefetch_active > s.plan.store.holder.prefetch_workers)
      return "prefetch workers out of bounds" + at;
    if (static_cast<std::int64_t>(node.prefetch_queue.size()) > s.plan.store.holder.prefetch_queue_limit)
      return "prefetch queue out of bounds" + at;
    if (node.read_active < 0 || node.read_active > s.plan.store.holder.file_read_workers)
      return "file-read workers out of bounds" + at;
    const StagingArena& arena = node.staging.arena();
    if (arena.used() > arena.capacity()) return "staging arena out of bounds" + at;
  }
  if (s.open_operations < 0) return "I5: more operations ended than were started";
  return s.master.check(now);
}

std::uint64_t Cluster::hash() const {
  const State& s = *state_;
  std::uint64_t h = s.master.hash();
  for (const NodeState& node : s.nodes) {
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(node.alive), static_cast<std::uint64_t>(node.epoch),
          static_cast<std::uint64_t>(node.prefetch_active), static_cast<std::uint64_t>(node.read_active),
          static_cast<std::uint64_t>(node.staging.arena().used().value),
          static_cast<std::uint64_t>(node.ssd.used().value), static_cast<std::uint64_t>(node.ssd.keys())}) {
      h = mix64(h ^ part) + part;
    }
  }
  return mix64(h ^ static_cast<std::uint64_t>(s.open_operations));
}

}  // namespace kvlift
