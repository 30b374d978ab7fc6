// The prefetcher of a node (RFC #4271): synchronous trigger, jobs on a bounded pool with a bounded queue, and the
// on-hit rounds that share the promotion chain with them.
//
//   trigger:  cooldown? -> reserve -> one job                          (no RPC, no I/O: I7)
//   job:      per chunk: read-only query -> own keys promoted one by one -> next chunk
//             then one delegation per remote holder, whose own job promotes
#include <algorithm>
#include <iterator>

#include "core/cluster_state.hpp"

namespace kvlift {

/// False when the trigger was suppressed or brought nothing new.
bool Cluster::State::trigger_prefetch(NodeId n, std::span<const ObjectKey> keys, bool ignore_cooldown, Time now) {
  const bool by_design =
      plan.policy.trigger == Policy::Trigger::exist_probe || plan.policy.trigger == Policy::Trigger::router_call;
  if (!by_design || plan.policy.execution != Policy::Execution::immediate_pool) return false;
  std::vector<ObjectKey> of_standard_tenant;
  if (!plan.policy.all_tenants) {
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(of_standard_tenant),
                 [](const ObjectKey& k) { return k.tenant == TenantId::standard; });
    keys = of_standard_tenant;
  }
  if (keys.empty()) return false;
  NodeState& client = node(n);
  ++counters.triggers;
  if (plan.policy.gate_cooldown && !ignore_cooldown && client.throttle.in_cooldown(now)) {
    ++counters.cooldown_yields;
    return false;
  }
  reserved.clear();
  if (plan.policy.reserve == Policy::Reserve::after_query) {
    for (const ObjectKey& key : keys) reserved.push_back({.key = key});  // every probe queries (#2646)
  } else {
    const ReserveTally tally = client.throttle.reserve(keys, now, reserved);
    counters.keys_triggered += tally.granted;
    counters.keys_deduplicated += tally.deduplicated;
  }
  if (reserved.empty()) return false;
  enqueue_job(n, false, now);
  return true;
}

/// A remote trigger's keys arrive at their holder; the caller never learns the outcome.
void Cluster::State::accept_delegation(NodeId n, std::span<const Reservation> keys, Time now) {
  NodeState& holder = node(n);
  if (plan.policy.gate_cooldown && holder.throttle.in_cooldown(now)) {
    ++counters.delegations_in_cooldown;
    return;
  }
  std::vector<ObjectKey> names;
  names.reserve(keys.size());
  for (const Reservation& r : keys) names.push_back(r.key);
  reserved.clear();
  holder.throttle.reserve(names, now, reserved);
  if (!reserved.empty()) enqueue_job(n, true, now);
}

void Cluster::State::enqueue_job(NodeId n, bool delegated, Time now) {
  NodeState& owner = node(n);
  if (static_cast<std::int64_t>(owner.prefetch_queue.size()) >= plan.store.holder.prefetch_queue_limit) {
    ++counters.triggers_refused_queue_full;
    for (const Reservation& r : reserved) {
      if (r.generation != Generation::none) owner.throttle.release(r.key, r.generation, now, woken);
    }
    return wake_waiters(now);
  }
  const std::uint32_t slot = jobs.acquire();
  JobOp& job = jobs[slot];
  begin(job, n);
  job.state = JobOp::State::queued;
  job.delegated = delegated;
  job.keys.swap(reserved);
  job.chunk_begin = job.chunk_end = 0;
  job.local.clear();
  job.local_next = 0;
  job.remote.clear();
  job.remote_next = 0;
  owner.prefetch_queue.push_back(slot);
  start_jobs(n, now);
}

void Cluster::State::start_jobs(NodeId n, Time now) {
  NodeState& owner = node(n);
  while (!owner.prefetch_queue.empty() && owner.prefetch_active < plan.store.holder.prefetch_workers) {
    const std::uint32_t slot = owner.prefetch_queue.front();
    owner.prefetch_queue.pop_front();
    ++owner.prefetch_active;
    JobOp& job = jobs[slot];
    if (job.delegated) {
      job.local.swap(job.keys);
      job.keys.clear();
      job_start_local(slot, now);
    } else {
      job_next_chunk(slot, now);
    }
  }
}

void Cluster::State::job_next_chunk(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  job.chunk_begin = job.chunk_end;
  if (job.chunk_begin == job.keys.size()) return job_next_remote(slot, now);
  job.chunk_end =
      std::min(job.keys.size(), job.chunk_begin + static_cast<std::size_t>(plan.store.client.prefetch_chunk_keys));
  job.state = JobOp::State::querying;
  call(Component::job, slot, job, kMasterNode, job.chunk_end - job.chunk_begin);
}

void Cluster::State::on_job(std::uint32_t slot, const Completion& c, Time now) {
  JobOp& job = jobs[slot];
  if (!current(job.node, job.epoch)) return job_abort(slot);
  switch (job.state) {
    case JobOp::State::querying:
      if (c.error == Error::OK && !job.answered) {
        serve(c, [&](bool) {
          job.views.clear();
          for (std::size_t i = job.chunk_begin; i < job.chunk_end; ++i)
            job.views.push_back(master.query_read_only(job.node, job.keys[i].key));
        });
        return reply(Component::job, slot, job, kMasterNode);
      }
      if (c.error != Error::OK) {
        for (std::size_t i = job.chunk_begin; i < job.chunk_end; ++i) {
          ++counters.keys_query_failed;
          if (job.keys[i].generation == Generation::none) continue;
          node(job.node).throttle.mark_failed(job.keys[i].key, job.keys[i].generation, now, woken);
        }
        wake_waiters(now);
        return job_next_chunk(slot, now);
      }
      return job_classify(slot, now);
    case JobOp::State::registering:
      if (c.error == Error::OK && !job.answered) {
        serve(c, [&](bool first) {
          const Error answer =
              master.register_prefetch_task(job.node, job.local[job.local_next].key, now, job.tickets[job.local_next]);
          if (first) job.answer = answer;
        });
        return reply(Component::job, slot, job, kMasterNode);
      }
      return job_registered(slot, c.error == Error::OK ? job.answer : c.error, now);
    case JobOp::State::promoting: {
      const bool registering = job.run.chain.state() == Promotion::State::registering;
      const bool done = promotion_on(Component::job, slot, job, job.run, c, now);
      if (registering && job.run.chain.state() == Promotion::State::allocating) {
        const Reservation& r = job.local[job.local_next];
        node(job.node).throttle.mark_in_flight(r.key, r.generation, now);
      }
      if (done) job_promotion_done(slot, now);
      return;
    }
    case JobOp::State::delegating: {
      const auto& remote = job.remote[job.remote_next];
      if (c.error == Error::OK && !job.answered) {
        if (node(remote.first).alive) serve(c, [&](bool) { accept_delegation(remote.first, remote.second, now); });
        return reply(Component::job, slot, job, remote.first);
      }
      if (c.error != Error::OK) ++counters.delegations_failed;
      ++job.remote_next;
      return job_next_remote(slot, now);
    }
    case JobOp::State::queued:
    case JobOp::State::yielding:
      break;
  }
  KVLIFT_ASSERT(!"a queued job has no effect under way");
}

void Cluster::State::job_classify(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  Throttle<>& throttle = node(job.node).throttle;
  job.local.clear();
  job.local_next = 0;
  if (plan.policy.reserve == Policy::Reserve::after_query) job_reserve_chunk(job, now);
  for (std::size_t i = job.chunk_begin; i < job.chunk_end; ++i) {
    const Reservation& r = job.keys[i];
    const ObjectView& view = job.views[i - job.chunk_begin];
    if (r.generation == Generation::none) continue;
    if (view.error != Error::OK) {
      ++counters.keys_query_failed;
      throttle.mark_failed(r.key, r.generation, now, woken);
    } else if (view.in_memory || !view.on_disk || view.size.value <= 0) {
      ++counters.keys_already_resident;
      throttle.mark_already_resident(r.key, r.generation, now);
    } else if (view.holder == job.node) {
      job.local.push_back(r);
    } else {
      ++counters.delegated_keys;
      throttle.mark_delegated(r.key, r.generation, now);
      auto at =
          std::find_if(job.remote.begin(), job.remote.end(), [&](const auto& p) { return p.first == view.holder; });
      if (at == job.remote.end()) at = job.remote.emplace(job.remote.end(), view.holder, std::vector<Reservation>{});
      at->second.push_back(r);
    }
  }
  wake_waiters(now);
  job_start_local(slot, now);
}

/// Reserves what the query found on SSD only; the rest of the chunk is forgotten.
void Cluster::State::job_reserve_chunk(JobOp& job, Time now) {
  std::vector<ObjectKey> names;
  std::vector<std::size_t> indices;
  for (std::size_t i = job.chunk_begin; i < job.chunk_end; ++i) {
    const ObjectView& view = job.views[i - job.chunk_begin];
    if (view.error != Error::OK || view.in_memory || !view.on_disk || view.size.value <= 0) {
      ++(view.error != Error::OK ? counters.keys_query_failed : counters.keys_already_resident);
      continue;
    }
    names.push_back(job.keys[i].key);
    indices.push_back(i);
  }
  reserved.clear();
  const ReserveTally tally = node(job.node).throttle.reserve(names, now, reserved);
  counters.keys_triggered += tally.granted;
  counters.keys_deduplicated += tally.deduplicated;
  for (const Reservation& r : reserved) job.keys[indices[r.index]].generation = r.generation;
}

void Cluster::State::job_start_local(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  if (plan.policy.registration == Policy::Registration::one_by_one) {
    job.state = JobOp::State::promoting;
    return job_next_local(slot, now);
  }
  job.tickets.assign(job.local.size(), PromotionTicket::any);
  job.state = JobOp::State::registering;
  job_next_registration(slot, now);
}

/// Registers the keys of a chunk one after another; those that may go on are compacted to the front, then promoted.
void Cluster::State::job_next_registration(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  NodeState& holder = node(job.node);
  while (job.local_next < job.local.size()) {
    const Reservation& r = job.local[job.local_next];
    if (holder.ssd.size_of(r.key)) {
      job.tickets[job.local_next] =
          static_cast<PromotionTicket>(static_cast<std::uint64_t>(job.epoch) << 32 | ++next_sequence);
      return call(Component::job, slot, job, kMasterNode, 1);
    }
    ++counters.keys_not_in_index;
    holder.throttle.mark_failed(r.key, r.generation, now, woken);
    job.local.erase(job.local.begin() + static_cast<std::ptrdiff_t>(job.local_next));
    job.tickets.erase(job.tickets.begin() + static_cast<std::ptrdiff_t>(job.local_next));
  }
  wake_waiters(now);
  job.local_next = 0;
  job.state = JobOp::State::promoting;
  job_next_local(slot, now);
}

void Cluster::State::job_registered(std::uint32_t slot, Error answer, Time now) {
  JobOp& job = jobs[slot];
  Throttle<>& throttle = node(job.node).throttle;
  const Reservation r = job.local[job.local_next];
  // Without an answer the master may have the task: the chain finds out, and gives it back when it fails.
  if (answer == Error::OK || answer == Error::RPC_FAIL || answer == Error::RPC_TIMEOUT) {
    throttle.mark_in_flight(r.key, r.generation, now);
    ++job.local_next;
  } else {
    if (answer == Error::PROMOTION_ALREADY_EXISTS) {
      throttle.mark_delegated(r.key, r.generation, now);
    } else {
      throttle.mark_failed(r.key, r.generation, now, woken);
    }
    job.local.erase(job.local.begin() + static_cast<std::ptrdiff_t>(job.local_next));
    job.tickets.erase(job.tickets.begin() + static_cast<std::ptrdiff_t>(job.local_next));
    wake_waiters(now);
  }
  job_next_registration(slot, now);
}

/// Promotes the next key that this node holds; the look-up in its own index comes first (RC-13).
void Cluster::State::job_next_local(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  NodeState& holder = node(job.node);
  while (job.local_next < job.local.size()) {
    const Reservation& r = job.local[job.local_next];
    const bool registered = plan.policy.registration == Policy::Registration::whole_chunk;
    auto size = holder.ssd.size_of(r.key);
    if (registered && !size) size = Bytes{0};  // it left the SSD since; the chain gives its task back
    if (size && (registered || size->value > 0)) {
      if (!registered && job_yields(slot)) return;
      job.run.chain = Promotion(registered ? Promotion::Origin::on_hit : Promotion::Origin::prefetch, r.key, *size);
      job.run.ticket =
          registered ? job.tickets[job.local_next]
                     : static_cast<PromotionTicket>(static_cast<std::uint64_t>(job.epoch) << 32 | ++next_sequence);
      if (!promotion_start(Component::job, slot, job, job.run, now)) return;
      return job_promotion_done(slot, now);
    }
    ++counters.keys_not_in_index;
    holder.throttle.mark_failed(r.key, r.generation, now, woken);
    ++job.local_next;
  }
  wake_waiters(now);
  job_next_chunk(slot, now);
}

/// True when the next key's promotion must wait, before it begins, for the demand reads of this SSD to end. A key that
/// one of them has staged needs no device, so it goes on.
bool Cluster::State::job_yields(std::uint32_t slot) {
  JobOp& job = jobs[slot];
  NodeState& holder = node(job.node);
  if (!plan.policy.yield_to_reads || holder.reads_open == 0) return false;
  if (staged_elsewhere(holder, job.local[job.local_next].key)) return false;
  ++counters.jobs_yielded;
  job.state = JobOp::State::yielding;
  holder.yielding.push_back(slot);
  return true;
}

void Cluster::State::resume_yielding(NodeId n, Time now) {
  if (node(n).reads_open > 0) return;
  const std::deque<std::uint32_t> slots = std::exchange(node(n).yielding, {});
  for (const std::uint32_t slot : slots) {
    jobs[slot].state = JobOp::State::promoting;
    job_next_local(slot, now);
  }
}

void Cluster::State::job_promotion_done(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  Throttle<>& throttle = node(job.node).throttle;
  const Reservation& r = job.local[job.local_next++];
  switch (job.run.chain.outcome()) {
    case Promotion::Outcome::completed:
      throttle.mark_completed(r.key, r.generation, now, woken);
      break;
    case Promotion::Outcome::skipped:
      throttle.mark_delegated(r.key, r.generation, now);  // somebody else brings it (RC-07, RC-19)
      break;
    case Promotion::Outcome::failed:
    case Promotion::Outcome::open:
      throttle.mark_failed(r.key, r.generation, now, woken);
      break;
  }
  if (job.run.chain.dram_pressure() && plan.policy.gate_cooldown) {
    throttle.enter_cooldown(now);
    ++counters.cooldowns_entered;
  }
  if (job.run.chain.dram_pressure() && plan.policy.on_full == Policy::OnFull::stop_list) {
    // The rest was never registered. It is forgotten, so that it may be triggered when the cooldown ends (RC-14);
    // the original leaves it blocked for the whole dedup TTL.
    const auto give_up = [&](const Reservation& left) {
      if (left.generation == Generation::none) return;
      ++counters.keys_released;
      if (plan.store.legacy.pressure_leaves_triggered) {
        throttle.mark_delegated(left.key, left.generation, now);
      } else {
        throttle.release(left.key, left.generation, now, woken);
      }
    };
    for (; job.local_next < job.local.size(); ++job.local_next) give_up(job.local[job.local_next]);
    for (std::size_t i = job.chunk_end; i < job.keys.size(); ++i) give_up(job.keys[i]);
    job.chunk_end = job.keys.size();
  }
  wake_waiters(now);
  job_next_local(slot, now);
}

void Cluster::State::job_next_remote(std::uint32_t slot, Time now) {
  JobOp& job = jobs[slot];
  if (job.remote_next == job.remote.size()) return job_finish(slot, now);
  job.state = JobOp::State::delegating;
  const auto& [holder, keys] = job.remote[job.remote_next];
  call(Component::job, slot, job, holder, keys.size());
}

void Cluster::State::job_finish(std::uint32_t slot, Time now) {
  const NodeId owner = jobs[slot].node;
  jobs.release(slot);
  --node(owner).prefetch_active;
  start_jobs(owner, now);
}

/// The process of the job is dead: its throttle, pool and staging went with it.
void Cluster::State::job_abort(std::uint32_t slot) {
  promotion_abort(jobs[slot], jobs[slot].run);
  jobs.release(slot);
}

}  // namespace kvlift
