#include "tests/step/step_driver.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace kvlift::step {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::request_lost:
      return "request_lost";
    case Fault::reply_lost:
      return "reply_lost";
    case Fault::duplicate:
      return "duplicate";
    case Fault::delay:
      return "delay";
    case Fault::stall:
      return "stall";
    case Fault::reorder:
      return "reorder";
    case Fault::short_read:
      return "short_read";
    case Fault::read_error:
      return "read_error";
    case Fault::write_error:
      return "write_error";
    case Fault::transfer_error:
      return "transfer_error";
    case Fault::completed_twice:
      return "completed_twice";
  }
  return "unknown";
}

FaultRates FaultRates::all(std::uint32_t per_million_each) {
  FaultRates rates;
  rates.per_million.fill(per_million_each);
  return rates;
}

StepDriver::StepDriver(const PlatformSettings& platform, std::uint64_t seed, const FaultRates& rates)
    : platform_(platform), random_(seed), rates_(rates) {
  for (const HostSettings& kind : platform.hosts) {
    for (std::int64_t h = 0; h < kind.count; ++h) {
      for (std::int64_t n = 0; n < kind.nodes; ++n) host_of_.push_back(static_cast<std::uint32_t>(hosts_.size()));
      hosts_.push_back(kind);
    }
  }
}

bool StepDriver::draw(Fault fault) {
  const auto kind = static_cast<std::size_t>(fault);
  if (rates_.per_million[kind] == 0 || !random_.chance(rates_.per_million[kind], 1'000'000)) return false;
  ++faults_[kind];
  return true;
}

Duration StepDriver::nominal(const Effect& e) const {
  const auto bytes = static_cast<double>(e.bytes.value);
  switch (e.kind) {
    case EffectKind::timer:
      return {0};
    case EffectKind::compute:
      return e.span;
    case EffectKind::rpc_request:
      return platform_.rpc_latency + platform_.rpc_service + Duration{platform_.rpc_key_service.ns * e.requests};
    case EffectKind::rpc_reply:
      return platform_.rpc_latency;
    case EffectKind::disk_read: {
      const SsdSettings& ssd = hosts_[host_of_[index(e.node)]].ssd;
      return Duration{ssd.read_latency.ns * e.requests} + from_seconds(bytes / ssd.stream_bandwidth);
    }
    case EffectKind::disk_write: {
      const SsdSettings& ssd = hosts_[host_of_[index(e.node)]].ssd;
      return Duration{ssd.write_latency.ns * e.requests} + from_seconds(bytes / ssd.write_bandwidth);
    }
    case EffectKind::transfer: {
      const std::uint32_t from = host_of_[index(e.node)];
      const std::uint32_t to = host_of_[index(e.peer)];
      if (from == to) {
        const double link = e.accelerator == NodeId::none ? hosts_[from].copy_bandwidth : hosts_[from].node_bandwidth;
        const Duration slices{e.accelerator == NodeId::none ? 0 : hosts_[from].node_key_time.ns * e.requests};
        return slices + from_seconds(bytes / std::min(hosts_[from].copy_bandwidth, link));
      }
      return hosts_[from].nic_latency +
             from_seconds(bytes / std::min(hosts_[from].nic_bandwidth, hosts_[to].nic_bandwidth));
    }
  }
  return {0};
}

void StepDriver::push(Time at, const Completion& completion) {
  heap_.push_back({at, order_++, completion});
  std::push_heap(heap_.begin(), heap_.end(),
                 [](const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; });
}

void StepDriver::take(Effects& effects) {
  for (const Effect& e : effects) {
    Completion c{.id = e.id, .bytes = e.bytes};
    if (e.kind == EffectKind::timer) {  // time itself is not faulty
      push(std::max(now_, e.at), c);
      continue;
    }
    Duration takes = nominal(e);
    if (draw(Fault::delay)) takes = {takes.ns * static_cast<std::int64_t>(1 + random_.below(100))};
    if (draw(Fault::stall)) takes = takes + milliseconds(static_cast<std::int64_t>(1'000 + random_.below(19'000)));
    if (draw(Fault::reorder))
      takes = {static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(takes.ns) * 4 + 1))};
    const auto cut_short = [&] {
      c.bytes = {static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(e.bytes.value)))};
    };
    switch (e.kind) {
      case EffectKind::rpc_request:
        if (draw(Fault::request_lost)) {
          c.error = Error::RPC_TIMEOUT;
          takes = seconds(10);
        }
        c.delivered_twice = c.error == Error::OK && draw(Fault::duplicate);
        break;
      case EffectKind::rpc_reply:
        if (draw(Fault::reply_lost)) {
          c.error = Error::RPC_TIMEOUT;
          takes = seconds(10);
        }
        break;
      case EffectKind::disk_read:
        if (draw(Fault::short_read) && e.bytes.value > 0) cut_short();
        if (draw(Fault::read_error)) c.error = Error::FILE_READ_FAIL, c.bytes = {0};
        break;
      case EffectKind::disk_write:
        if (draw(Fault::write_error) && e.bytes.value > 0) {
          cut_short();
          if (random_.chance(1, 2)) c.error = Error::FILE_WRITE_FAIL;
        }
        break;
      case EffectKind::transfer:
        if (draw(Fault::transfer_error) && e.bytes.value > 0) {
          cut_short();
          if (random_.chance(1, 2)) c.error = Error::TRANSFER_FAIL;
        }
        break;
      case EffectKind::timer:
      case EffectKind::compute:
        break;
    }
    push(now_ + takes, c);
    if (draw(Fault::completed_twice)) push(now_ + takes, c);
  }
  effects.clear();
}

bool StepDriver::next(Completion& completion) {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(),
                [](const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; });
  now_ = heap_.back().at;
  completion = heap_.back().completion;
  heap_.pop_back();
  return true;
}

}  // namespace kvlift::step
