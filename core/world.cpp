#include "core/world.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "core/cluster.hpp"
#include "core/engine.hpp"
#include "core/slots.hpp"

namespace kvlift {

namespace {

enum class Own : std::uint8_t { arrival = 64, pause = 65, step = 66 };

ClusterPlan cluster_plan(const RunPlan& plan) {
  ClusterPlan cluster;
  cluster.store = plan.store;
  cluster.policy = plan.policy;
  cluster.nodes = nodes_of(plan.platform);
  cluster.seed = plan.seed;
  cluster.places = plan.places;
  return cluster;
}

/// What `now` has more than `before`; both come from the same code, so names stand at the same places.
Counters difference(const Counters& now, const Counters& before) {
  Counters d = now;
  for (std::size_t i = 0; i < d.size(); ++i) d[i].second -= before[i].second;
  return d;
}

double dram_share(const DramUsage& usage, Bytes part) {
  return usage.capacity.value == 0 ? 0.0 : static_cast<double>(part.value) / static_cast<double>(usage.capacity.value);
}

}  // namespace

struct World::State {
  explicit State(const RunPlan& p) : plan(p), cluster(cluster_plan(p)) {
    for (std::int64_t e = 0; e < plan.engine.engines; ++e) {
      engines.emplace_back(plan.engine, static_cast<std::uint32_t>(e), static_cast<NodeId>(e * plan.engine.ranks));
      engines.back().set_block_bytes(plan.workload.block_bytes);
    }
    step_waits_for.resize(engines.size());
  }

  RunPlan plan;
  Cluster cluster;
  std::vector<Engine> engines;
  std::vector<std::uint32_t> step_waits_for;
  std::uint32_t sequence = 0;
  std::uint32_t arrival_waits_for = 0;
  std::uint32_t pause_waits_for = 0;
  std::size_t phase = 0;
  std::int64_t issued = 0;    ///< of the phase
  std::int64_t finished = 0;  ///< of the phase
  std::int64_t all_finished = 0;
  /// With its router; by the token of the look-up.
  struct Routed {
    bool live = false;
    Request request;
    std::uint64_t client = 0;
    Time arrived;
  };
  Slots<Routed> routed;
  std::uint64_t next_request = 0;
  bool source_ended = false;
  Request coming;  ///< the next request of an open loop
  Counters counters_before;
  Time last_sample = kLongAgo;
  double leased_sum = 0;
  std::int64_t leased_samples = 0;
  std::int64_t above_watermark = 0;  ///< of the samples
  bool done = false;
  RunResult result;

  std::uint32_t emit(Own own, std::uint32_t slot, Effect effect) {
    if (++sequence == 0) ++sequence;
    effect.id = static_cast<EffectId>(static_cast<std::uint64_t>(own) << 56 | static_cast<std::uint64_t>(slot) << 32 |
                                      sequence);
    cluster.effects().push_back(effect);
    return sequence;
  }
  const Phase& current() const { return plan.workload.phases[phase]; }

  void begin_phase(Time now);
  void end_phase(Time now);
  void issue_prompt(std::uint64_t client, Time now);
  void schedule_arrival(Time now);
  void arrive(const Request& request, std::uint64_t client, Time now);
  void on_routed(const OpResult& result, Time now);
  void sample(Time now);
  void settle(Time now);
};

void World::State::begin_phase(Time now) {
  while (phase < plan.workload.phases.size()) {
    PhaseResult& r = result.phases.emplace_back();
    r.name = current().name;
    r.start = now;
    r.dram_used_start = dram_share(cluster.master().dram(now), cluster.master().dram(now).allocated);
    counters_before = cluster.named_counters();
    issued = finished = 0;
    leased_sum = 0;
    leased_samples = above_watermark = 0;
    last_sample = kLongAgo;
    switch (current().kind) {
      case Phase::Kind::pause:
        pause_waits_for = emit(Own::pause, 0, {.kind = EffectKind::timer, .at = now + current().span});
        return;
      case Phase::Kind::closed_loop:
        for (std::int64_t c = 0; c < current().concurrency && issued < current().prompts; ++c)
          issue_prompt(static_cast<std::uint64_t>(c), now);
        if (current().prompts > 0) return;
        break;
      case Phase::Kind::open_loop:
        source_ended = !plan.workload.source || !plan.workload.source(coming);
        if (!source_ended) return schedule_arrival(now);
        break;
    }
    end_phase(now);
  }
  done = true;
}

void World::State::end_phase(Time now) {
  PhaseResult& r = result.phases.back();
  r.end = now;
  const DramUsage usage = cluster.master().dram(now);
  r.dram_used_end = dram_share(usage, usage.allocated);
  r.dram_leased_mean = leased_samples == 0 ? 0.0 : leased_sum / static_cast<double>(leased_samples);
  r.dram_above_watermark =
      leased_samples == 0 ? 0.0 : static_cast<double>(above_watermark) / static_cast<double>(leased_samples);
  r.counters = difference(cluster.named_counters(), counters_before);
  std::sort(r.requests.begin(), r.requests.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return a.id < b.id; });
  ++phase;
}

/// The share of DRAM under lease, looked at with arrivals but at most every 10 s: it walks what is resident.
void World::State::sample(Time now) {
  if (last_sample != kLongAgo && now - last_sample < seconds(10)) return;
  last_sample = now;
  const DramUsage usage = cluster.master().dram(now);
  leased_sum += dram_share(usage, usage.leased);
  above_watermark += dram_share(usage, usage.allocated) > plan.store.master.eviction_high_watermark_ratio ? 1 : 0;
  ++leased_samples;
}

void World::State::arrive(const Request& request, std::uint64_t client, Time now) {
  sample(now);
  ++issued;
  Engine& engine = engines[request.id % engines.size()];
  if (plan.policy.trigger != Policy::Trigger::router_call)
    return engine.arrive(request, static_cast<std::uint32_t>(phase), client, now, now, cluster);
  const std::uint32_t slot = routed.acquire();
  Routed& waiting = routed[slot];
  waiting.request = request;
  waiting.client = client;
  waiting.arrived = now;
  cluster.route(static_cast<std::uint32_t>(request.id % static_cast<std::uint64_t>(plan.policy.routers)),
                static_cast<OpToken>(slot), engine.keys_of(request), now);
}

/// The router knows where the keys are, or has given up asking: the request enters its engine.
void World::State::on_routed(const OpResult& looked_up, Time now) {
  const auto slot = static_cast<std::uint32_t>(looked_up.token);
  const Routed& waiting = routed[slot];
  engines[waiting.request.id % engines.size()].arrive(waiting.request, static_cast<std::uint32_t>(phase),
                                                      waiting.client, waiting.arrived, now, cluster);
  routed.release(slot);
}

void World::State::issue_prompt(std::uint64_t client, Time now) {
  Request request;
  const auto prompt = static_cast<std::uint64_t>(current().first_prompt + issued);
  request.id = next_request++;
  request.input = plan.workload.prompt_tokens;
  request.output = plan.workload.prompt_output;
  const std::int64_t blocks =
      (request.input.value + plan.engine.block_tokens.value - 1) / plan.engine.block_tokens.value;
  for (std::int64_t b = 0; b < blocks; ++b)
    request.block_ids.push_back((prompt + 1) << 32 | static_cast<std::uint64_t>(b));
  arrive(request, client, now);
}

void World::State::schedule_arrival(Time now) {
  const Time at = std::max(now, result.phases.back().start + (coming.arrival - Time{}));
  arrival_waits_for = emit(Own::arrival, 0, {.kind = EffectKind::timer, .at = at});
}

/// Hands results to engines and engines' work to the driver until nothing more happens at this instant.
void World::State::settle(Time now) {
  std::vector<OpResult> results;
  std::vector<Engine::Finished> ended;
  for (bool busy = true; busy;) {
    busy = false;
    results.clear();
    results.swap(cluster.results());
    for (const OpResult& r : results) {
      busy = true;
      if (r.kind == OpResult::Kind::route) {
        on_routed(r, now);
        continue;
      }
      engines[Engine::engine_of(r.token)].on_result(r, now, cluster);
    }
    for (std::uint32_t e = 0; e < engines.size(); ++e) {
      ended.clear();
      ended.swap(engines[e].finished());
      for (const Engine::Finished& f : ended) {
        busy = true;
        ++finished;
        ++all_finished;
        result.phases[f.record.phase].requests.push_back(f.record);
        if (current().kind == Phase::Kind::closed_loop && issued < current().prompts) issue_prompt(f.client, now);
      }
      engines[e].continue_work(now, cluster);
      if (Duration span; engines[e].take_compute(span)) {
        step_waits_for[e] =
            emit(Own::step, e,
                 {.kind = EffectKind::compute, .node = static_cast<NodeId>(e * plan.engine.ranks), .span = span});
      }
    }
    if (busy || done) continue;
    const Phase& p = current();
    const bool over = (p.kind == Phase::Kind::closed_loop && finished == p.prompts) ||
                      (p.kind == Phase::Kind::open_loop && source_ended && finished == issued);
    if (!over) continue;
    end_phase(now);
    begin_phase(now);
    busy = !done;
  }
}

World::World(const RunPlan& plan) : state_(std::make_unique<State>(plan)) {}
World::~World() = default;
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;

void World::start(Time now) {
  state_->cluster.start(now);
  state_->begin_phase(now);
  if (!state_->done) state_->settle(now);
}

void World::on(const Completion& completion, Time now) {
  State& s = *state_;
  ++s.result.effects;
  s.result.trace_hash = mix64(s.result.trace_hash ^ static_cast<std::uint64_t>(completion.id)) ^
                        mix64(static_cast<std::uint64_t>(now.ns) +
                              static_cast<std::uint64_t>(static_cast<std::int64_t>(completion.error)));
  const auto bits = static_cast<std::uint64_t>(completion.id);
  const auto own = static_cast<Own>(bits >> 56);
  const auto sequence = static_cast<std::uint32_t>(bits);
  if (bits >> 56 < 64) {
    s.cluster.on(completion, now);
  } else if (own == Own::arrival && sequence == s.arrival_waits_for) {
    s.arrival_waits_for = 0;
    s.coming.id = s.next_request++;
    s.arrive(s.coming, 0, now);
    s.source_ended = !s.plan.workload.source(s.coming);
    if (!s.source_ended) s.schedule_arrival(now);
  } else if (own == Own::pause && sequence == s.pause_waits_for) {
    s.pause_waits_for = 0;
    s.end_phase(now);
    s.begin_phase(now);
  } else if (own == Own::step) {
    const auto e = static_cast<std::uint32_t>(bits >> 32) & 0xffffff;
    if (s.step_waits_for[e] == sequence) {
      s.step_waits_for[e] = 0;
      s.engines[e].on_step_computed(now, s.cluster);
    }
  }
  if (!s.done) s.settle(now);
}

Effects& World::effects() { return state_->cluster.effects(); }
Places& World::places() { return state_->cluster.places(); }
bool World::done() const { return state_->done; }
const RunResult& World::result() const { return state_->result; }
std::int64_t World::requests_finished() const { return state_->all_finished; }
const Cluster& World::cluster() const { return state_->cluster; }

}  // namespace kvlift
