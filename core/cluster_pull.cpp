// The holder's pull of promotions that the master has queued for it: by promotion on hit and by routers (section 2.10).
//
//   sleeping -> pulling -> the workers take what was handed out, one promotion each at a time -> sleeping
//
// An own loop sleeps `pull_period`; on the heartbeat the pull follows the offload round, and the next offload round
// waits for it, as in the original (RC-06).
#include "core/cluster_state.hpp"

namespace kvlift {

bool Cluster::State::pulls_promotions() const {
  return plan.store.master.promotion_on_hit || plan.policy.execution == Policy::Execution::pull;
}

std::uint32_t Cluster::State::first_puller(NodeId n) const {
  return index(n) * static_cast<std::uint32_t>(plan.policy.pull_workers);
}

/// Of a process that has joined.
void Cluster::State::start_periodic_work(NodeId n, Time now) {
  const std::uint32_t first = first_puller(n);
  for (std::uint32_t w = 0; w < static_cast<std::uint32_t>(plan.policy.pull_workers); ++w) {
    pulls[first + w] = PullOp{};
    begin(pulls[first + w], n);
    pulls[first + w].live = pulls_promotions();
  }
  OffloadOp& offload = offloads[index(n)];
  begin(offload, n);
  offload.live = plan.store.master.enable_offload;
  if (offload.live) sleep(Component::offload, index(n), offload, now + plan.store.holder.heartbeat_period);
  if (pulls_promotions() && (plan.policy.pull_own_loop || !offload.live)) pull_sleep(n, now);
}

void Cluster::State::pull_sleep(NodeId n, Time now) {
  const Policy& policy = plan.policy;
  if (OffloadOp& offload = offloads[index(n)]; !policy.pull_own_loop && offload.live)
    return sleep(Component::offload, index(n), offload, now + plan.store.holder.heartbeat_period);
  const std::uint32_t first = first_puller(n);
  pulls[first].state = PullOp::State::sleeping;
  const Duration period = policy.pull_period.ns > 0 ? policy.pull_period : plan.store.holder.heartbeat_period;
  sleep(Component::on_hit, first, pulls[first], now + period);
}

void Cluster::State::pull_begin(NodeId n) {
  const std::uint32_t first = first_puller(n);
  PullOp& op = pulls[first];
  op.state = PullOp::State::pulling;
  op.tasks.clear();
  call(Component::on_hit, first, op, kMasterNode, 0);
}

void Cluster::State::on_pull(std::uint32_t slot, const Completion& c, Time now) {
  PullOp& op = pulls[slot];
  switch (op.state) {
    case PullOp::State::sleeping:
      return pull_begin(op.node);
    case PullOp::State::pulling: {
      if (c.error == Error::OK && !op.answered) {
        // A second delivery may hand out more tasks; they ride on the same answer, or they would be lost.
        serve(c, [&](bool) { master.pull_promotions(op.node, now, op.tasks); });
        return reply(Component::on_hit, slot, op, kMasterNode);
      }
      op.state = PullOp::State::idle;
      // When the answer is lost its tasks are known here only by luck, so the master's reaper frees them.
      std::deque<PromotionTask>& pulled = node(op.node).pulled;
      if (c.error == Error::OK) pulled.insert(pulled.end(), op.tasks.begin(), op.tasks.end());
      op.tasks.clear();
      return pull_work(op.node, now);
    }
    case PullOp::State::promoting:
      if (!promotion_on(Component::on_hit, slot, op, op.run, c, now)) return;
      op.state = PullOp::State::idle;
      return pull_work(op.node, now);
    case PullOp::State::idle:
      break;
  }
  KVLIFT_ASSERT(!"an idle worker has no effect under way");
}

/// Gives idle workers what was pulled; the round is over when nothing is left and all are idle.
void Cluster::State::pull_work(NodeId n, Time now) {
  std::deque<PromotionTask>& pulled = node(n).pulled;
  const std::uint32_t first = first_puller(n);
  bool busy = false;
  for (std::uint32_t slot = first; slot < first + static_cast<std::uint32_t>(plan.policy.pull_workers); ++slot) {
    PullOp& op = pulls[slot];
    while (op.state == PullOp::State::idle && !pulled.empty()) {
      const PromotionTask task = pulled.front();
      pulled.pop_front();
      op.state = PullOp::State::promoting;
      op.run.chain = Promotion(Promotion::Origin::on_hit, task.key, task.size);
      op.run.ticket = task.ticket;
      if (promotion_start(Component::on_hit, slot, op, op.run, now)) op.state = PullOp::State::idle;
    }
    busy = busy || op.state != PullOp::State::idle;
  }
  if (!busy) pull_sleep(n, now);
}

}  // namespace kvlift
