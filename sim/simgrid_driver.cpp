#include "sim/simgrid_driver.hpp"

#include <algorithm>
#include <array>
#include <simgrid/kernel/Timer.hpp>
#include <string>
#include <utility>

#include "core/assert.hpp"

namespace kvlift::sim {

namespace sg4 = simgrid::s4u;

namespace {

/// The engine takes its settings from a command line, and is silent only if told so there.
struct CommandLine {
  std::array<std::string, 6> words{
      "kvlift",
      "--log=root.threshold:warning",
      // Transfers take latency + bytes / bandwidth: the plain fluid model, without TCP's window or its factors.
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/TCP-gamma:0",
      "--cfg=surf/precision:1e-12",
  };
  std::vector<char*> pointers;
  int count = 0;
  CommandLine() {
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    count = static_cast<int>(words.size());
  }
};

CommandLine& command_line() {
  static CommandLine line;
  return line;
}

constexpr double kUnbounded = 0;

}  // namespace

SimGridDriver::SimGridDriver(const PlatformSettings& platform, Complete complete)
    : platform_(platform),
      complete_(std::move(complete)),
      engine_(&command_line().count, command_line().pointers.data()) {
  build(platform);
  sg4::Activity::on_completion_cb([this](sg4::Activity const& activity) {
    const auto flight = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1);
    KVLIFT_ASSERT(activity.get_state() == sg4::Activity::State::FINISHED);
    last_ = std::move(flights_[flight].activity);
    end_leg(flight);
  });
  for (std::int64_t w = 0; w < platform_.master_threads; ++w) workers_free_at_.push(0.0);
}

SimGridDriver::~SimGridDriver() = default;

void SimGridDriver::build(const PlatformSettings& platform) {
  auto* zone = sg4::create_star_zone("cluster");
  for (const HostSettings& kind : platform.hosts) {
    for (std::int64_t h = 0; h < kind.count; ++h) {
      const std::string name = std::to_string(machines_.size());
      Machine machine{.settings = kind};
      machine.ssd = zone->create_host("ssd" + name, kind.ssd.read_bandwidth)->seal();
      machine.memory = zone->create_host("memory" + name, kind.copy_bandwidth)->seal();
      machine.nic = zone->create_host("nic" + name, 1.0);
      const sg4::LinkInRoute out(
          zone->create_link("out" + name, kind.nic_bandwidth)->set_latency(to_seconds(kind.nic_latency))->seal());
      const sg4::LinkInRoute in(zone->create_link("in" + name, kind.nic_bandwidth)->set_latency(0)->seal());
      zone->add_route(machine.nic->get_netpoint(), nullptr, nullptr, nullptr, std::vector{out}, false);
      zone->add_route(nullptr, machine.nic->get_netpoint(), nullptr, nullptr, std::vector{in}, false);
      machine.nic->seal();
      const sg4::LinkInRoute memory(zone->create_link("copies" + name, kind.copy_bandwidth)->seal());
      for (std::int64_t n = 0; n < kind.nodes; ++n) {
        const std::string node = std::to_string(nodes_.size());
        sg4::Host* process = zone->create_host("node" + node, 1.0);
        const sg4::LinkInRoute own(zone->create_link("own" + node, kind.node_bandwidth)->seal());
        zone->add_route(process->get_netpoint(), process->get_netpoint(), nullptr, nullptr, std::vector{memory, own},
                        false);
        nodes_.push_back(process->seal());
        machine_of_.push_back(static_cast<std::uint32_t>(machines_.size()));
      }
      machines_.push_back(machine);
    }
  }
  zone->seal();
}

Time SimGridDriver::now() const { return Time{} + from_seconds(sg4::Engine::get_clock()); }

// -- dates ------------------------------------------------------------------------------------------------------

void SimGridDriver::schedule(double delay_s, const Date& date) {
  ++cost_.timers;
  Date entry = date;
  entry.at = sg4::Engine::get_clock() + delay_s;
  entry.order = order_++;
  dates_.push(entry);
  arm();
}

void SimGridDriver::arm() {
  if (dates_.empty() || (armed_ >= 0 && armed_ <= dates_.top().at)) return;
  armed_ = dates_.top().at;
  simgrid::kernel::timer::Timer::set(armed_, [this, at = armed_] { fire(at); });
}

void SimGridDriver::fire(double at) {
  if (at != armed_) return;  // an earlier date took over and has armed anew since
  while (!dates_.empty() && dates_.top().at <= sg4::Engine::get_clock()) {
    const Date due = dates_.top();
    dates_.pop();
    if (due.flight != kNone) {
      continue_disk(due.flight);
    } else {
      // The kernel's clock is a double: a date may come back a nanosecond early, which no timer may.
      complete_(due.completion, std::max(Time{due.at_ns}, now()));
    }
  }
  armed_ = -1;
  arm();
}

// -- activities ---------------------------------------------------------------------------------------------------

std::uint32_t SimGridDriver::new_flight(const Completion& completion) {
  std::uint32_t flight = 0;
  if (free_flights_.empty()) {
    flight = static_cast<std::uint32_t>(flights_.size());
    flights_.emplace_back();
  } else {
    flight = free_flights_.back();
    free_flights_.pop_back();
  }
  flights_[flight].completion = completion;
  flights_[flight].device = 0;
  flights_[flight].cached = {};
  return flight;
}

void SimGridDriver::launch(std::uint32_t flight, const sg4::ActivityPtr& activity) {
  ++cost_.activities;
  flights_[flight].activity = activity;
}

void SimGridDriver::work(std::uint32_t flight, sg4::Host* where, double amount, double bound) {
  sg4::ExecPtr exec = sg4::Exec::init();
  exec->set_flops_amount(amount);
  if (bound > kUnbounded) exec->set_bound(bound);
  exec->set_host(where);
  exec->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(flight) + 1));
  launch(flight, exec);
  exec->start();
}

/// A leg of the flight has ended: the next one begins, or the effect is complete.
void SimGridDriver::end_leg(std::uint32_t flight) {
  if (flights_[flight].cached.value > 0) return continue_disk(flight);
  if (flights_[flight].from != nullptr) return send(flight);
  const Completion completion = flights_[flight].completion;
  free_flights_.push_back(flight);
  complete_(completion, now());
}

void SimGridDriver::request_disk(const Effect& effect) {
  const std::uint32_t machine = machine_of_[index(effect.node)];
  const SsdSettings& ssd = machines_[machine].settings.ssd;
  const bool reads = effect.kind == EffectKind::disk_read;
  const std::uint32_t flight = new_flight({.id = effect.id, .bytes = effect.bytes});
  flights_[flight].host = machine;
  // A request that the page cache answers whole does not wait for the device.
  const double waits = effect.bytes == effect.cached ? 0.0 : effect.requests;
  const double latency = to_seconds(reads ? ssd.read_latency : ssd.write_latency) * waits;
  const double device = static_cast<double>((effect.bytes - effect.cached).value);
  flights_[flight].cached = effect.cached;
  const double amount = reads ? device : device * ssd.read_bandwidth / ssd.write_bandwidth;
  const double bound = reads ? ssd.stream_bandwidth : kUnbounded;
  flights_[flight].device = amount;
  flights_[flight].bound = bound;
  if (latency == 0) return continue_disk(flight);
  schedule(latency, {.flight = flight});
}

void SimGridDriver::continue_disk(std::uint32_t flight) {
  Flight& f = flights_[flight];
  const Machine& machine = machines_[f.host];
  if (f.device > 0) {
    const double amount = std::exchange(f.device, 0.0);
    return work(flight, machine.ssd, amount, f.bound);
  }
  const double cached = static_cast<double>(std::exchange(f.cached, Bytes{0}).value);
  if (cached > 0) return work(flight, machine.memory, cached, machine.settings.ssd.cached_bandwidth);
  end_leg(flight);
}

void SimGridDriver::transfer(const Effect& effect) {
  const std::uint32_t from = machine_of_[index(effect.node)];
  const std::uint32_t to = machine_of_[index(effect.peer)];
  const std::uint32_t flight = new_flight({.id = effect.id, .bytes = effect.bytes});
  const HostSettings& host = machines_[to].settings;
  if (from == to && effect.accelerator == NodeId::none)
    return work(flight, machines_[to].memory, static_cast<double>(effect.bytes.value), kUnbounded);
  Flight& f = flights_[flight];
  f.from = from == to ? nodes_[index(effect.accelerator)] : machines_[from].nic;
  f.to = from == to ? f.from : machines_[to].nic;
  f.host = to;
  const double slices = to_seconds(host.node_key_time) * effect.requests;
  if (slices > 0 && effect.accelerator != NodeId::none)
    return work(flight, nodes_[index(effect.accelerator)], slices, kUnbounded);
  end_leg(flight);
}

void SimGridDriver::send(std::uint32_t flight) {
  Flight& f = flights_[flight];
  sg4::CommPtr comm = sg4::Comm::sendto_init(std::exchange(f.from, nullptr), f.to);
  comm->set_payload_size(static_cast<std::uint64_t>(f.completion.bytes.value));
  comm->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(flight) + 1));
  launch(flight, comm);
  comm->start();
}

double SimGridDriver::call_time(const Effect& effect) {
  const double latency = to_seconds(platform_.rpc_latency);
  const double service = to_seconds(platform_.rpc_service) + to_seconds(platform_.rpc_key_service) * effect.requests;
  if (effect.peer != kMasterNode) return latency + service;
  // The master's workers serve calls in order of arrival; all calls have the same latency, so that is issue order.
  const double clock = sg4::Engine::get_clock();
  const double begins = std::max(clock + latency, workers_free_at_.top());
  workers_free_at_.pop();
  workers_free_at_.push(begins + service);
  return begins + service - clock;
}

void SimGridDriver::take(Effects& effects) {
  for (const Effect& effect : effects) {
    const Completion completion{.id = effect.id, .bytes = effect.bytes};
    const bool empty = effect.bytes.value == 0;
    switch (effect.kind) {
      case EffectKind::timer:
        schedule(std::max(0.0, to_seconds(effect.at - now())),
                 {.at_ns = effect.at.ns, .flight = kNone, .completion = completion});
        break;
      case EffectKind::compute:
        after(to_seconds(effect.span), completion);
        break;
      case EffectKind::rpc_request:
        after(call_time(effect), completion);
        break;
      case EffectKind::rpc_reply:
        after(to_seconds(platform_.rpc_latency), completion);
        break;
      case EffectKind::disk_read:
      case EffectKind::disk_write:
        empty ? after(0.0, completion) : request_disk(effect);
        break;
      case EffectKind::transfer:
        empty ? after(0.0, completion) : transfer(effect);
        break;
    }
  }
  effects.clear();
}

void SimGridDriver::run() {
  engine_.run();
  last_ = nullptr;
  KVLIFT_ASSERT(flights_.size() == free_flights_.size());  // the library is silent about what was lost
}

}  // namespace kvlift::sim
