#include "real/stand_in.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace kvlift::real {

StandIn::StandIn(const PlatformSettings& platform, const Parts& parts) : platform_(platform), parts_(parts) {
  for (const HostSettings& kind : platform.hosts) {
    for (std::int64_t h = 0; h < kind.count; ++h) {
      Machine machine{.settings = kind};
      machine.ssd = add_resource(kind.ssd.read_bandwidth);
      machine.memory = add_resource(kind.copy_bandwidth);
      machine.nic_out = add_resource(kind.nic_bandwidth);
      machine.nic_in = add_resource(kind.nic_bandwidth);
      for (std::int64_t n = 0; n < kind.nodes; ++n) {
        machine_of_.push_back(static_cast<std::uint32_t>(machines_.size()));
        own_link_.push_back(add_resource(kind.node_bandwidth));
      }
      machines_.push_back(machine);
    }
  }
  for (std::int64_t w = 0; w < platform.master_threads; ++w) workers_free_at_.emplace();
}

std::int32_t StandIn::add_resource(double capacity) {
  resources_.emplace_back(capacity);
  return static_cast<std::int32_t>(resources_.size()) - 1;
}

void StandIn::disk(const Effect& effect, std::vector<Stage>& stages) const {
  const Machine& machine = machines_[machine_of_[index(effect.node)]];
  const SsdSettings& ssd = machine.settings.ssd;
  const bool reads = effect.kind == EffectKind::disk_read;
  const auto device = static_cast<double>((effect.bytes - effect.cached).value);
  if (device > 0) {
    stages.push_back({.delay = (reads ? ssd.read_latency : ssd.write_latency) * effect.requests});
    stages.push_back({.resource = {machine.ssd, -1},
                      .amount = reads ? device : device * ssd.read_bandwidth / ssd.write_bandwidth,
                      .bound = reads ? ssd.stream_bandwidth : 0});
  }
  if (effect.cached.value > 0)
    stages.push_back({.resource = {machine.memory, -1},
                      .amount = static_cast<double>(effect.cached.value),
                      .bound = ssd.cached_bandwidth});
}

void StandIn::transfer(const Effect& effect, std::vector<Stage>& stages) const {
  const Machine& from = machines_[machine_of_[index(effect.node)]];
  const Machine& to = machines_[machine_of_[index(effect.peer)]];
  const auto bytes = static_cast<double>(effect.bytes.value);
  const bool inside = machine_of_[index(effect.node)] == machine_of_[index(effect.peer)];
  if (inside && effect.accelerator == NodeId::none) {
    stages.push_back({.resource = {to.memory, -1}, .amount = bytes});
    return;
  }
  if (effect.accelerator != NodeId::none) stages.push_back({.delay = to.settings.node_key_time * effect.requests});
  if (inside) {
    stages.push_back({.resource = {to.memory, own_link_[index(effect.accelerator)]}, .amount = bytes});
  } else {
    stages.push_back({.delay = from.settings.nic_latency});
    stages.push_back({.resource = {from.nic_out, to.nic_in}, .amount = bytes});
  }
}

Duration StandIn::call_time(const Effect& effect, Time now) {
  const Duration service = platform_.rpc_service + platform_.rpc_key_service * effect.requests;
  if (effect.peer != kMasterNode) return platform_.rpc_latency + service;
  const Time begins = std::max(now + platform_.rpc_latency, workers_free_at_.top());
  workers_free_at_.pop();
  workers_free_at_.push(begins + service);
  return begins + service - now;
}

bool StandIn::begin(const Effect& effect, Time now) {
  std::vector<Stage> stages;
  switch (effect.kind) {
    case EffectKind::rpc_request:
      if (parts_.calls) stages.push_back({.delay = call_time(effect, now)});
      break;
    case EffectKind::rpc_reply:
      if (parts_.calls) stages.push_back({.delay = platform_.rpc_latency});
      break;
    case EffectKind::disk_read:
    case EffectKind::disk_write:
      if (parts_.ssd) disk(effect, stages);
      break;
    case EffectKind::transfer:
      if (parts_.memory_and_links && effect.bytes.value > 0) transfer(effect, stages);
      break;
    case EffectKind::timer:
    case EffectKind::compute:
      break;
  }
  std::erase_if(stages, [](const Stage& s) { return s.delay.ns <= 0 && s.amount <= 0; });
  if (stages.empty()) return false;
  const auto user = static_cast<std::uint64_t>(effect.id);
  const bool fresh = flights_.emplace(user, Flight{.stages = std::move(stages)}).second;
  KVLIFT_ASSERT(fresh);
  start_stage(user, now);
  return true;
}

void StandIn::start_stage(std::uint64_t user, Time now) {
  Flight& flight = flights_.at(user);
  const Stage& stage = flight.stages[flight.stage];
  if (stage.amount <= 0) {
    flight.open = 1;
    delays_.push(now + stage.delay, user);
    return;
  }
  for (const std::int32_t resource : stage.resource) {
    if (resource < 0) continue;
    ++flight.open;
    resources_[static_cast<std::size_t>(resource)].add(user, stage.amount, stage.bound, now);
  }
}

void StandIn::part_ended(std::uint64_t user, Time at, std::vector<EffectId>& ended) {
  Flight& flight = flights_.at(user);
  if (--flight.open > 0) return;
  if (++flight.stage < flight.stages.size()) return start_stage(user, at);
  flights_.erase(user);
  ended.push_back(static_cast<EffectId>(user));
}

Time StandIn::next() const {
  Time first = delays_.next();
  for (const FluidResource& resource : resources_) first = std::min(first, resource.next());
  return first;
}

void StandIn::advance(Time now, std::vector<EffectId>& ended) {
  // Step by step, so that a stage begins when the one before it ended and not when somebody looked.
  for (Time at = next(); at <= now; at = next()) {
    std::uint64_t delayed = 0;
    while (delays_.take(at, delayed)) part_ended(delayed, at, ended);
    for (FluidResource& resource : resources_) {
      if (resource.next() > at) continue;
      scratch_.clear();
      resource.advance(at, scratch_);
      for (const std::uint64_t user : std::vector(scratch_)) part_ended(user, at, ended);
    }
  }
}

}  // namespace kvlift::real
