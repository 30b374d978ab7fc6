#include "sim/simgrid_driver.hpp"

#include <xbt/log.h>

#include <algorithm>
#include <simgrid/kernel/Timer.hpp>
#include <string>
#include <utility>

#include "core/assert.hpp"

namespace kvlift::sim {

namespace sg4 = simgrid::s4u;

namespace {

double seconds_of(Duration d) { return to_seconds(d); }

/// The library's own words go nowhere unless they are warnings; must precede the engine.
const char* quiet_name() {
  xbt_log_control_set("root.thres:warning");
  return "kvlift";
}

/// The engine's constructor wants a command line; ours says nothing.
struct CommandLine {
  int count = 1;
  std::string name = quiet_name();
  std::vector<char*> words{name.data(), nullptr};
};

CommandLine& command_line() {
  static CommandLine line;
  return line;
}

}  // namespace

SimGridDriver::SimGridDriver(const PlatformSettings& platform, Complete complete)
    : platform_(platform), complete_(std::move(complete)), engine_(&command_line().count, command_line().words.data()) {
  // Transfers take latency + bytes / bandwidth: the plain fluid model, without TCP's window or its factors.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/bandwidth-factor:1");
  sg4::Engine::set_config("network/latency-factor:1");
  sg4::Engine::set_config("network/weight-S:0");
  sg4::Engine::set_config("network/crosstraffic:0");
  // Dates closer than this count as one; the default of 10 us would merge RPCs.
  sg4::Engine::set_config("surf/precision:1e-9");
  build(platform);
  sg4::Activity::on_completion_cb([this](sg4::Activity const& activity) {
    const auto at = flights_.find(&activity);
    if (at == flights_.end()) return;
    const Flight flight = std::move(at->second);  // keeps the activity until its signal is over
    flights_.erase(at);
    complete_(flight.completion, now());
  });
  for (std::int64_t w = 0; w < platform_.master_threads; ++w) workers_free_at_.push(0.0);
}

SimGridDriver::~SimGridDriver() = default;

void SimGridDriver::build(const PlatformSettings& platform) {
  auto* zone = sg4::create_full_zone("cluster");
  struct Links {
    sg4::Link *memory, *nic_out, *nic_in;
  };
  std::vector<Links> links;
  std::vector<sg4::Link*> node_links;
  for (const HostSettings& kind : platform.hosts) {
    for (std::int64_t h = 0; h < kind.count; ++h) {
      const std::size_t host = hosts_.size();
      const std::string name = "host" + std::to_string(host);
      hosts_.push_back(kind);
      links.push_back(
          {zone->create_link(name + "-memory", kind.copy_bandwidth)->seal(),
           zone->create_link(name + "-out", kind.nic_bandwidth)->set_latency(seconds_of(kind.nic_latency))->seal(),
           zone->create_link(name + "-in", kind.nic_bandwidth)->seal()});
      for (std::int64_t n = 0; n < kind.nodes; ++n) {
        const std::string node = "node" + std::to_string(nodes_.size());
        sg4::Host* process = zone->create_host(node, 1e9);
        if (n == 0) {
          const SsdSettings& ssd = kind.ssd;
          sg4::Disk* disk = process->create_disk(name + "-ssd", ssd.read_bandwidth, ssd.write_bandwidth);
          disk->set_readwrite_bandwidth(ssd.mixed_bandwidth);
          // Few streams do not reach the device's bandwidth.
          disk->set_sharing_policy(sg4::Disk::Operation::READ, sg4::Disk::SharingPolicy::NONLINEAR,
                                   [stream = ssd.stream_bandwidth](double capacity, int streams) {
                                     return std::min(capacity, stream * streams);
                                   });
          disks_.push_back(disk->seal());
        }
        node_links.push_back(zone->create_link(node + "-in", kind.node_bandwidth)->seal());
        nodes_.push_back(process->seal());
        host_of_.push_back(host);
      }
    }
  }
  for (std::size_t from = 0; from < nodes_.size(); ++from) {
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      std::vector<sg4::LinkInRoute> route;
      if (host_of_[from] == host_of_[to]) {
        route.emplace_back(links[host_of_[to]].memory);
      } else {
        route.emplace_back(links[host_of_[from]].nic_out);
        route.emplace_back(links[host_of_[to]].nic_in);
      }
      route.emplace_back(node_links[to]);
      zone->add_route(nodes_[from]->get_netpoint(), nodes_[to]->get_netpoint(), nullptr, nullptr, route, false);
    }
  }
  zone->seal();
}

Time SimGridDriver::now() const { return Time{} + from_seconds(sg4::Engine::get_clock()); }

void SimGridDriver::after(double delay_s, const Completion& completion) {
  ++cost_.timers;
  simgrid::kernel::timer::Timer::set(sg4::Engine::get_clock() + delay_s,
                                     [this, completion] { complete_(completion, now()); });
}

void SimGridDriver::at(Time date, const Completion& completion) {
  ++cost_.timers;
  const double delay_s = std::max(0.0, seconds_of(date - now()));
  // The library's clock is a double: a date may come back a nanosecond early, which no timer may.
  simgrid::kernel::timer::Timer::set(sg4::Engine::get_clock() + delay_s,
                                     [this, date, completion] { complete_(completion, std::max(date, now())); });
}

void SimGridDriver::start(const sg4::ActivityPtr& activity, const Completion& completion) {
  ++cost_.activities;
  flights_.emplace(activity.get(), Flight{activity, completion});
}

void SimGridDriver::request_disk(const Effect& effect, bool reads) {
  const std::size_t host = host_of_[index(effect.node)];
  const SsdSettings& ssd = hosts_[host].ssd;
  const double latency = seconds_of(reads ? ssd.read_latency : ssd.write_latency) * effect.requests;
  const Completion completion{.id = effect.id, .bytes = effect.bytes};
  ++cost_.timers;
  simgrid::kernel::timer::Timer::set(sg4::Engine::get_clock() + latency, [this, host, reads, completion] {
    const auto type = reads ? sg4::Io::OpType::READ : sg4::Io::OpType::WRITE;
    sg4::IoPtr io = disks_[host]->io_init(completion.bytes.value, type);
    start(io, completion);
    io->start();
  });
}

void SimGridDriver::transfer(const Effect& effect) {
  const Completion completion{.id = effect.id, .bytes = effect.bytes};
  sg4::CommPtr comm = sg4::Comm::sendto_init(nodes_[index(effect.node)], nodes_[index(effect.peer)]);
  comm->set_payload_size(static_cast<std::uint64_t>(effect.bytes.value));
  start(comm, completion);
  comm->start();
}

double SimGridDriver::call_time(const Effect& effect) {
  const double latency = seconds_of(platform_.rpc_latency);
  const double service = seconds_of(platform_.rpc_service) + seconds_of(platform_.rpc_key_service) * effect.requests;
  if (effect.peer != kMasterNode) return latency + service;
  // The master's workers serve calls in order of arrival; all calls have the same latency, so that is issue order.
  const double clock = sg4::Engine::get_clock();
  const double begins = std::max(clock + latency, workers_free_at_.top());
  workers_free_at_.pop();
  workers_free_at_.push(begins + service);
  return begins + service - clock;
}

void SimGridDriver::take(Effects& effects) {
  // Starting an activity may complete nothing here and now, so the list does not grow under the loop.
  for (const Effect& effect : effects) {
    const Completion completion{.id = effect.id, .bytes = effect.bytes};
    switch (effect.kind) {
      case EffectKind::timer:
        at(effect.at, completion);
        break;
      case EffectKind::compute:
        after(seconds_of(effect.span), completion);
        break;
      case EffectKind::rpc_request:
        after(call_time(effect), completion);
        break;
      case EffectKind::rpc_reply:
        after(seconds_of(platform_.rpc_latency), completion);
        break;
      case EffectKind::disk_read:
      case EffectKind::disk_write:
        if (effect.bytes.value == 0) {
          after(0.0, completion);
        } else {
          request_disk(effect, effect.kind == EffectKind::disk_read);
        }
        break;
      case EffectKind::transfer:
        if (effect.bytes.value == 0) {
          after(0.0, completion);
        } else {
          transfer(effect);
        }
        break;
    }
  }
  effects.clear();
}

void SimGridDriver::run() { engine_.run(); }

}  // namespace kvlift::sim
