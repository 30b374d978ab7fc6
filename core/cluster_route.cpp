// A router in front of the engines (#3417): looks up which tier has a request's keys, sends the request on, and asks
// for what only SSD has. Routers share nothing: the task that a key has at the master dedups between them.
//
//   looking_up --> result --> asking_master (BatchPrefetchToMemory; the holders pull) ---------------> done
//                        \--> asking_holders (prefetch_offload_object, one call a holder; their pools) --> done
#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

void Cluster::route(std::uint32_t router, OpToken token, std::span<const ObjectKey> keys, Time now) {
  State& s = *state_;
  (void)now;
  ++s.open_operations;
  ++s.counters.router_lookups;
  const std::uint32_t slot = s.routes.acquire();
  RouteOp& op = s.routes[slot];
  op.node = static_cast<NodeId>(s.nodes.size() + router);  // a process beside the store's nodes
  op.token = token;
  op.state = RouteOp::State::looking_up;
  op.keys.assign(keys.begin(), keys.end());
  op.views.clear();
  op.wanted.clear();
  op.by_holder.clear();
  op.next = 0;
  s.call(Component::route, slot, op, kMasterNode, keys.size());
}

void Cluster::State::on_route(std::uint32_t slot, const Completion& c, Time now) {
  RouteOp& op = routes[slot];
  switch (op.state) {
    case RouteOp::State::looking_up: {
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          for (const ObjectKey& key : op.keys) {
            const ObjectView view = master.query_read_only(op.node, key);
            if (first) op.views.push_back(view);
          }
        });
        return reply(Component::route, slot, op, kMasterNode);
      }
      OpResult& r = result(OpResult::Kind::route, op.token, op.node, c.error);
      if (c.error != Error::OK) return routes.release(slot);
      for (const ObjectView& view : op.views) r.present.push_back(view.error == Error::OK);
      return route_choose(slot, now);
    }
    case RouteOp::State::asking_master:
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool) {
          for (const ObjectKey& key : op.wanted)
            ++(master.prefetch_to_memory(key, now) == Error::OK ? counters.router_keys_queued
                                                                : counters.router_keys_refused);
        });
        return reply(Component::route, slot, op, kMasterNode);
      }
      return routes.release(slot);  // nobody waits for what became of it
    case RouteOp::State::asking_holders: {
      const NodeId holder = op.by_holder[op.next].first;
      const auto& keys = op.by_holder[op.next].second;
      if (c.error == Error::OK && !op.answered) {
        if (node(holder).alive) serve(c, [&](bool) { accept_delegation(holder, keys, now); });
        return reply(Component::route, slot, op, holder);
      }
      if (c.error != Error::OK) ++counters.delegations_failed;
      ++op.next;
      return route_next_holder(slot);
    }
  }
}

/// The keys that only SSD has, and whom to ask for them.
void Cluster::State::route_choose(std::uint32_t slot, Time now) {
  (void)now;
  RouteOp& op = routes[slot];
  for (std::size_t i = 0; i < op.keys.size(); ++i) {
    const ObjectView& view = op.views[i];
    if (view.error != Error::OK || view.in_memory || !view.on_disk || view.size.value <= 0) continue;
    if (!plan.policy.all_tenants && op.keys[i].tenant != TenantId::standard) continue;
    op.wanted.push_back(op.keys[i]);
    auto at = std::find_if(op.by_holder.begin(), op.by_holder.end(), [&](auto& p) { return p.first == view.holder; });
    if (at == op.by_holder.end())
      at = op.by_holder.emplace(op.by_holder.end(), view.holder, std::vector<Reservation>{});
    at->second.push_back({.key = op.keys[i]});
  }
  counters.router_keys_wanted += op.wanted.size();
  if (plan.policy.execution == Policy::Execution::immediate_pool) {
    op.state = RouteOp::State::asking_holders;
    return route_next_holder(slot);
  }
  if (op.wanted.empty()) return routes.release(slot);
  op.state = RouteOp::State::asking_master;
  call(Component::route, slot, op, kMasterNode, op.wanted.size());
}

void Cluster::State::route_next_holder(std::uint32_t slot) {
  RouteOp& op = routes[slot];
  if (op.next == op.by_holder.size()) return routes.release(slot);
  call(Component::route, slot, op, op.by_holder[op.next].first, op.by_holder[op.next].second.size());
}

}  // namespace kvlift
