// Probe and batch get, with the get planner: which replica, how long to wait, when to fall back to the SSD.
//
//   querying --> waiting --> requerying --> reading --> done
//       |           (only SSD-bound keys whose promotion is live here, one deadline for the batch)
//       +--------------------------------> reading
//
// A key waits only while its promotion is in flight in this very process; every other SSD-bound key goes to
// the SSD at once (RFC #4271, component 4). A key whose promotion ended is asked for again with a lease, and that
// lease is the one its transfer is checked against (RC-15, RC-29, RC-71).
#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

// -- probe --------------------------------------------------------------------------------------------------

void Cluster::probe(NodeId node, OpToken token, std::span<const ObjectKey> keys, Time now) {
  State& s = *state_;
  (void)now;
  ++s.open_operations;
  ++s.counters.probes;
  s.counters.probe_keys += keys.size();
  const std::uint32_t slot = s.probes.acquire();
  ProbeOp& op = s.probes[slot];
  s.begin(op, node);
  op.token = token;
  op.keys.assign(keys.begin(), keys.end());
  s.call(Component::probe, slot, op, kMasterNode, keys.size());
}

void Cluster::State::on_probe(std::uint32_t slot, const Completion& c, Time now) {
  ProbeOp& op = probes[slot];
  Error error = current(op.node, op.epoch) ? c.error : Error::RPC_FAIL;
  if (error == Error::OK && !op.answered) {
    serve(c, [&](bool) { master.exist(op.keys, now, op.present); });
    return reply(Component::probe, slot, op, kMasterNode);
  }
  OpResult& r = result(OpResult::Kind::probe, op.token, op.node, error);
  if (error == Error::OK) {
    r.present = op.present;
    std::vector<ObjectKey> hits;
    for (std::size_t i = 0; i < op.keys.size(); ++i) {
      if (op.present[i]) hits.push_back(op.keys[i]);
    }
    counters.probe_hits += hits.size();
    // The answer is what it would be without prefetch; the trigger does no RPC.
    if (plan.policy.trigger == Policy::Trigger::exist_probe) trigger_prefetch(op.node, hits, false, now);
  }
  probes.release(slot);
}

// -- get ----------------------------------------------------------------------------------------------------

void Cluster::get(NodeId node, OpToken token, std::span<const KeyItem> items, Time now, Tokens tokens) {
  State& s = *state_;
  ++s.open_operations;
  ++s.counters.gets;
  const std::uint32_t slot = s.gets.acquire();
  GetOp& op = s.gets[slot];
  s.begin(op, node);
  op.token = token;
  op.state = GetOp::State::querying;
  op.items.clear();
  op.asked.clear();
  op.wait_order.clear();
  op.wait_next = 0;
  op.wait_pending = false;
  op.timer = 0;
  op.endpoints.clear();
  op.parts = 0;
  op.memory.clear();
  op.memory_settled = false;
  op.started = op.query_sent = op.read_started = op.memory_done = now;
  op.waited = {};
  op.tokens = tokens;
  for (const KeyItem& item : items) {
    op.asked.push_back(static_cast<std::uint32_t>(op.items.size()));
    op.items.push_back({.item = item});
  }
  s.call(Component::get, slot, op, kMasterNode, items.size());
}

void Cluster::State::on_get(std::uint32_t slot, std::uint32_t sequence, const Completion& c, Time now) {
  GetOp& op = gets[slot];
  const bool alive = current(op.node, op.epoch);
  if (TransferSet::Part part; op.memory.take(sequence, part)) {
    const bool whole = alive && c.error == Error::OK && c.bytes == part.bytes && reachable(part.place);
    if (!whole) {
      for (GetOp::Item& item : op.items) {
        if (!item.settled && item.outcome.tier == Tier::memory && item.view.memory.node == part.place.node &&
            item.view.memory.segment == part.place.segment) {
          item.outcome.error = c.error == Error::OK ? Error::TRANSFER_FAIL : c.error;
        }
      }
    }
    if (op.memory.empty()) get_settle(slot, now);
    return;
  }
  if (op.waits_for != sequence) {
    ++counters.stale_completions;
    return;
  }
  op.waits_for = 0;
  if (!alive) return get_finish(slot, Error::RPC_FAIL, now);
  if (c.error == Error::OK && !op.answered) {
    op.answers.clear();
    serve(c, [&](bool first) {
      for (const std::uint32_t i : op.asked) {
        const ObjectView view = master.query(op.node, op.items[i].item.key, now);
        if (first) op.answers.push_back(view);
      }
    });
    return reply(Component::get, slot, op, kMasterNode);
  }
  if (c.error == Error::OK) {
    for (std::size_t a = 0; a < op.asked.size(); ++a) {
      GetOp::Item& item = op.items[op.asked[a]];
      item.view = op.answers[a];
      if (plan.policy.trigger == Policy::Trigger::oracle) foresee(item.view);
      item.lease_until = op.query_sent + item.view.lease;
      if (op.state == GetOp::State::requerying && item.view.in_memory) ++counters.get_keys_replanned;
    }
  }
  if (op.state == GetOp::State::querying) {
    if (c.error != Error::OK) return get_finish(slot, c.error, now);
    return get_plan_reads(slot, now);
  }
  KVLIFT_ASSERT(op.state == GetOp::State::requerying);
  op.waited = now - op.wait_began;
  get_start_reads(slot, now);  // an unanswered second query leaves the plan of the first
}

void Cluster::State::get_plan_reads(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  std::vector<ObjectKey> disk_keys;
  for (std::uint32_t i = 0; i < op.items.size(); ++i) {
    const ObjectView& view = op.items[i].view;
    if (view.error == Error::OK && !view.in_memory && view.on_disk) {
      op.wait_order.push_back(i);
      disk_keys.push_back(op.items[i].item.key);
    }
  }
  const Duration budget = get_wait_budget(op);
  if (disk_keys.empty() || budget.ns <= 0) return get_start_reads(slot, now);
  if (plan.policy.get_kick) {
    ++counters.kicks;
    if (node(op.node).throttle.in_cooldown(now)) ++counters.kicks_in_cooldown;
    trigger_prefetch(op.node, disk_keys, true, now);
  }
  op.state = GetOp::State::waiting;
  op.wait_began = now;
  if (plan.policy.get_wait != Policy::GetWait::per_key) get_start_timer(slot, budget, now);
  get_continue_wait(slot, now);
}

/// How long the batch, or each key of it, may wait; 0 when it must not.
Duration Cluster::State::get_wait_budget(const GetOp& op) const {
  const Policy& policy = plan.policy;
  switch (policy.get_wait) {
    case Policy::GetWait::off:
      return {0};
    case Policy::GetWait::batch_deadline:
    case Policy::GetWait::per_key:
      return policy.get_wait_budget.ns > 0 ? policy.get_wait_budget : plan.store.client.ssd_get_wait;
    case Policy::GetWait::complete:
      return ThrottleSettings{}.live_max - milliseconds(1);  // then the throttle gives a lost job's keys up
    case Policy::GetWait::by_length:
      return std::min(policy.get_wait_cap,
                      policy.get_wait_base + Duration{policy.get_wait_per_1k_tokens.ns * op.tokens.value / 1000});
  }
  return {0};
}

void Cluster::State::get_start_timer(std::uint32_t slot, Duration budget, Time now) {
  GetOp& op = gets[slot];
  op.timer = emit(Component::get_deadline, slot, {.kind = EffectKind::timer, .node = op.node, .at = now + budget});
}

void Cluster::State::get_continue_wait(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  Throttle<>& throttle = node(op.node).throttle;
  while (op.wait_next < op.wait_order.size()) {
    GetOp::Item& item = op.items[op.wait_order[op.wait_next]];
    const auto answer = throttle.wait(item.item.key, static_cast<WaiterId>(slot), now);
    if (answer == WaitAnswer::waiting) {
      ++counters.get_waits;
      op.wait_pending = true;
      if (plan.policy.get_wait == Policy::GetWait::per_key) get_start_timer(slot, get_wait_budget(op), now);
      return;
    }
    item.promoted = answer == WaitAnswer::completed;
    ++op.wait_next;
  }
  get_end_wait(slot, now);
}

void Cluster::State::wake_waiters(Time now) {
  // Each waiter looks again, in the order they began to wait; a look may end the get and start other work.
  std::vector<WaiterId> waiters;
  waiters.swap(woken);
  for (const WaiterId w : waiters) {
    const auto slot = static_cast<std::uint32_t>(w);
    GetOp& op = gets[slot];
    if (!op.live || op.state != GetOp::State::waiting || !op.wait_pending || !current(op.node, op.epoch)) continue;
    op.wait_pending = false;
    get_continue_wait(slot, now);
  }
}

void Cluster::State::on_get_deadline(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  op.timer = 0;
  if (op.state != GetOp::State::waiting) return;
  if (!current(op.node, op.epoch)) return get_finish(slot, Error::RPC_FAIL, now);
  ++counters.get_waits_late;
  if (plan.policy.get_wait != Policy::GetWait::per_key) return get_end_wait(slot, now);
  const ObjectKey& late = op.items[op.wait_order[op.wait_next++]].item.key;
  node(op.node).throttle.cancel_wait(late, static_cast<WaiterId>(slot));
  op.wait_pending = false;
  get_continue_wait(slot, now);
}

void Cluster::State::get_end_wait(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  Throttle<>& throttle = node(op.node).throttle;
  if (op.wait_pending) {
    throttle.cancel_wait(op.items[op.wait_order[op.wait_next]].item.key, static_cast<WaiterId>(slot));
    op.wait_pending = false;
  }
  op.timer = 0;
  // Keys behind the one that was late may be in memory by now; they need no more waiting.
  for (; op.wait_next < op.wait_order.size(); ++op.wait_next) {
    GetOp::Item& item = op.items[op.wait_order[op.wait_next]];
    item.promoted = throttle.state_of(item.item.key, now) == ThrottleState::completed;
  }
  op.asked.clear();
  for (const std::uint32_t i : op.wait_order) {
    if (op.items[i].promoted) op.asked.push_back(i);
  }
  op.waited = now - op.wait_began;
  if (op.asked.empty()) return get_start_reads(slot, now);
  op.state = GetOp::State::requerying;
  op.query_sent = now;
  call(Component::get, slot, op, kMasterNode, op.asked.size());
}

void Cluster::State::get_start_reads(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  struct Source {
    Allocation place;
    Bytes bytes;
    std::int32_t keys = 0;
  };
  op.state = GetOp::State::reading;
  op.read_started = op.memory_done = now;
  std::vector<Source> sources;  // memory, by segment, in order of first key
  for (GetOp::Item& item : op.items) {
    const ObjectView& view = item.view;
    if (view.error != Error::OK || (!view.in_memory && !view.on_disk)) {
      item.outcome.error = view.error == Error::OK ? Error::OBJECT_NOT_FOUND : view.error;
      item.settled = true;
      ++counters.get_keys_missed;
    } else if (view.in_memory) {
      item.outcome.tier = Tier::memory;
      ++counters.get_keys_memory;
      const auto at = std::find_if(sources.begin(), sources.end(),
                                   [&](const Source& s) { return s.place.segment == view.memory.segment; });
      if (at == sources.end()) {
        sources.push_back({view.memory, view.size, 1});
      } else {
        at->bytes += view.size;
        ++at->keys;
      }
    } else {
      item.outcome.tier = Tier::disk;
      ++counters.get_keys_disk;
      if (std::find(op.endpoints.begin(), op.endpoints.end(), view.holder) == op.endpoints.end())
        op.endpoints.push_back(view.holder);
    }
  }
  for (const auto& [place, bytes, keys] : sources) {
    counters.bytes_read_dram += static_cast<std::uint64_t>(bytes.value);
    const std::uint32_t sequence =
        emit(Component::get, slot,
             {.kind = EffectKind::transfer,
              .node = place.node,
              .peer = op.node,
              .requests = keys,
              .bytes = bytes,
              .accelerator = op.node},
             [&, segment = place.segment](auto&& add) {
               for (std::size_t i = 0; i < op.items.size(); ++i) {
                 const GetOp::Item& item = op.items[i];
                 if (item.settled || item.outcome.tier != Tier::memory || item.view.memory.segment != segment) continue;
                 add({.key = item.item.key,
                      .size = item.view.size,
                      .from = place_of(item.view.memory),
                      .to = user_place(op.node, op.token, i)});
               }
             });
    op.memory.add({sequence, place, bytes});
  }
  if (!plan.store.legacy.serial_endpoints) {
    const std::vector<NodeId> endpoints = std::exchange(op.endpoints, {});
    for (const NodeId holder : endpoints) get_start_endpoint(slot, holder, now);
  }
  if (op.memory.empty()) get_settle(slot, now);
}

void Cluster::State::get_start_endpoint(std::uint32_t slot, NodeId holder, Time now) {
  GetOp& op = gets[slot];
  const std::uint32_t child = staged_reads.acquire();
  StagedReadOp& read = staged_reads[child];
  begin(read, op.node);
  ++op.parts;
  ++counters.staged_reads;
  read.state = StagedReadOp::State::asking;
  read.parent = slot;
  read.holder = holder;
  read.holder_epoch = 0;
  read.items.clear();
  read.window_begin = read.window_end = 0;
  read.loans.clear();
  read.windows.clear();
  read.reads = false;
  read.reads_pending = 0;
  read.has_worker = false;
  read.arrived = read.followed = false;
  read.staged_at = now;
  const std::int64_t limit = plan.policy.read_part_keys;
  for (std::uint32_t i = 0; i < op.items.size(); ++i) {
    GetOp::Item& item = op.items[i];
    if (item.settled || item.in_read || item.outcome.tier != Tier::disk || item.view.holder != holder) continue;
    if (limit > 0 && static_cast<std::int64_t>(read.items.size()) == limit) break;
    item.in_read = true;
    read.items.push_back(i);
    read.holder_epoch = item.view.holder_epoch;
  }
  call(Component::staged_read, child, read, holder, read.items.size());
}

/// The holder has staged this part, or the part has failed: the next one may use the device while this one travels.
void Cluster::State::get_follow(std::uint32_t child, Time now) {
  StagedReadOp& part = staged_reads[child];
  if (part.followed || !current(part.node, part.epoch)) return;
  part.followed = true;
  const GetOp& op = gets[part.parent];
  const bool more = std::any_of(op.items.begin(), op.items.end(), [&](const GetOp::Item& item) {
    return !item.settled && !item.in_read && item.outcome.tier == Tier::disk && item.view.holder == part.holder;
  });
  if (more) get_start_endpoint(part.parent, part.holder, now);
}

void Cluster::State::get_part_ended(std::uint32_t slot, Time now) {
  --gets[slot].parts;
  get_settle(slot, now);
}

/// Called when a group of transfers ended: starts the next endpoint, or ends the get when nothing is left.
void Cluster::State::get_settle(std::uint32_t slot, Time now) {
  GetOp& op = gets[slot];
  if (!op.memory.empty()) return;
  if (!op.memory_settled) {
    op.memory_settled = true;
    op.memory_done = now;
    for (GetOp::Item& item : op.items) {
      if (item.settled || item.outcome.tier != Tier::memory) continue;
      item.settled = true;
      if (item.outcome.error != Error::OK) continue;
      if (now > item.lease_until) {
        item.outcome.error = Error::LEASE_EXPIRED;
        ++counters.lease_expired;
      } else if (plan.verify && plan.policy.trigger != Policy::Trigger::oracle &&
                 !shadow_holds(item.view.memory, item.item.key)) {
        ++counters.corrupt_reads;
      }
    }
  }
  if (op.parts > 0) return;
  if (!op.endpoints.empty()) {
    const NodeId holder = op.endpoints.front();
    op.endpoints.erase(op.endpoints.begin());
    return get_start_endpoint(slot, holder, now);
  }
  get_finish(slot, current(op.node, op.epoch) ? Error::OK : Error::RPC_FAIL, now);
}

void Cluster::State::get_finish(std::uint32_t slot, Error error, Time now) {
  GetOp& op = gets[slot];
  KVLIFT_ASSERT(op.parts == 0 && op.memory.empty());
  OpResult& r = result(OpResult::Kind::get, op.token, op.node, error);
  r.wait_promotion = op.waited;
  if (error == Error::OK) {
    bool from_disk = false;
    for (const GetOp::Item& item : op.items) {
      r.keys.push_back(item.outcome);
      from_disk = from_disk || item.outcome.tier == Tier::disk;
      if (item.outcome.error != Error::OK) ++counters.get_keys_failed;
    }
    const Duration total = now - op.started - op.waited;
    // The query and the memory part count to DRAM; what the SSD adds on top of them counts to the SSD.
    r.load_ssd = from_disk ? now - op.memory_done : Duration{0};
    r.load_dram = total - r.load_ssd;
  }
  gets.release(slot);
}

}  // namespace kvlift
