// The holder's periodic work: offload rounds, liveness, and joining the master after a restart.
//
//   offload:  sleeping -> pulling -> [evicting ->] writing -> reporting -> next bucket ... -> trimming -> sleeping
//
// Offload, promotion pull and ping are separate loops, so that none delays another (RC-06, RC-41); a policy may put
// the pull behind the offload, as the original has it. Keys enter the
// local index before the master hears of them and leave it when the report fails (RC-12); the master hears of an
// eviction before the bucket is deleted (RC-38).
#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

namespace {
/// Objects one rescan report carries (store-mechanics section 7, scan page).
constexpr std::size_t kRescanPage = 20'000;
}  // namespace

void Cluster::State::offload_sleep(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  op.state = OffloadOp::State::sleeping;
  if (pulls_promotions() && !plan.policy.pull_own_loop) return pull_begin(op.node);  // it sleeps after the pull
  sleep(Component::offload, slot, op, now + plan.store.holder.heartbeat_period);
}

void Cluster::State::on_offload(std::uint32_t slot, const Completion& c, Time now) {
  OffloadOp& op = offloads[slot];
  NodeState& holder = node(op.node);
  switch (op.state) {
    case OffloadOp::State::sleeping:
      op.state = OffloadOp::State::pulling;
      op.tasks.clear();
      // Accepting again as soon as there is room (RC-36).
      holder.accepting = plan.store.holder.ssd_eviction != SsdEviction::none || holder.ssd.has_room({1});
      return call(Component::offload, slot, op, kMasterNode, 0);
    case OffloadOp::State::pulling:
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          const Error pulled = master.pull_offloads(op.node, holder.accepting, now, op.tasks);
          if (first) op.answer = pulled;
        });
        return reply(Component::offload, slot, op, kMasterNode);
      }
      if (c.error != Error::OK) {
        // The answer was lost with its tasks; the master's reaper unpins them.
        op.tasks.clear();
        return offload_sleep(slot, now);
      }
      if (op.answer == Error::SEGMENT_NOT_FOUND) {
        offload_sleep(slot, now);
        return join(op.node, now);
      }
      return offload_pack(slot, now);
    case OffloadOp::State::evicting:
    case OffloadOp::State::trimming: {
      if (c.error == Error::OK && !op.answered) {
        const bool withdraws = op.state == OffloadOp::State::trimming;
        serve(c, [&](bool) {
          (void)master.evict_disk_replicas(op.node, op.doomed_keys, now);
          if (withdraws) (void)master.evict_disk_replicas(op.node, holder.withdrawn, now);
        });
        return reply(Component::offload, slot, op, kMasterNode);
      }
      const bool trimming = op.state == OffloadOp::State::trimming;
      if (c.error == Error::OK) {
        counters.ssd_keys_evicted += op.doomed_keys.size();
        for (const std::uint32_t bucket : op.doomed_buckets) holder.ssd.erase_bucket(bucket);
        if (trimming) holder.withdrawn.clear();
      }
      op.doomed_buckets.clear();
      op.doomed_keys.clear();
      if (trimming) return offload_sleep(slot, now);
      if (c.error == Error::OK) return offload_write(slot, now);
      return offload_report(slot, now);  // reports the bucket as not done
    }
    case OffloadOp::State::writing: {
      const std::vector<OffloadTask>& bucket = op.buckets[op.bucket_next];
      Bytes expected{0};
      for (const OffloadTask& task : bucket) expected += task.source.size;
      counters.bytes_written_ssd += static_cast<std::uint64_t>(c.bytes.value);
      op.has_written = c.error == Error::OK && c.bytes == expected;
      if (op.has_written) {
        std::vector<SsdIndex::Object> objects;
        for (const OffloadTask& task : bucket) {
          // A source that was removed while it was read leaves other bytes; the master will not list them.
          const bool intact = !plan.verify || shadow_holds(task.source, task.key);
          objects.push_back({task.key, task.source.size, task.version, intact});
          (void)cached_bytes(op.node, task.key, task.source.size);  // what was written buffered stays in the cache
        }
        op.written_bucket = holder.ssd.insert_bucket(objects);
        ++counters.offload_buckets;
      }
      return offload_report(slot, now);
    }
    case OffloadOp::State::reporting:
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          const Error told = master.notify_offload(op.node, op.reports, now, first ? &op.accepted : nullptr);
          if (first) op.answer = told;
        });
        return reply(Component::offload, slot, op, kMasterNode);
      }
      return offload_after_report(slot, c.error == Error::OK ? op.answer : c.error, now);
  }
}

/// Groups what was pulled, behind what was left over from earlier rounds, into buckets.
void Cluster::State::offload_pack(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  NodeState& holder = node(op.node);
  op.buckets.clear();
  op.bucket_next = 0;
  op.reports.clear();
  op.has_written = false;
  if (plan.store.legacy.offload_read_leases) {
    for (const OffloadTask& task : op.tasks) (void)master.query(op.node, task.key, now);
  }
  std::vector<OffloadTask> pending;
  pending.swap(holder.tail);
  for (const OffloadTask& task : op.tasks) {
    const auto carried =
        std::find_if(pending.begin(), pending.end(), [&](const OffloadTask& p) { return p.key == task.key; });
    if (carried != pending.end()) {
      *carried = task;  // it is in the left-over already (RC-34); the later task may be of a later version
      continue;
    }
    const auto version = holder.ssd.version_of(task.key);
    if (version && *version != task.version) holder.ssd.erase(task.key);  // of an object that was removed or replaced
    if (version && *version == task.version) {
      op.reports.push_back({task.key, task.source.size, task.version});  // on SSD already: done (RC-35)
    } else if (task.source.node != op.node || !reachable(task.source) ||
               task.source.size > plan.store.holder.bucket_bytes || task.source.size.value <= 0) {
      op.reports.push_back({task.key, {-1}, task.version});
    } else {
      pending.push_back(task);
    }
  }
  op.tasks.clear();
  std::vector<OffloadTask> bucket;
  Bytes bytes{0};
  const auto full = [&](Bytes more) {
    return static_cast<std::int64_t>(bucket.size()) >= plan.store.holder.bucket_keys ||
           bytes + more > plan.store.holder.bucket_bytes;
  };
  for (const OffloadTask& task : pending) {
    if (full(task.source.size)) {
      op.buckets.push_back(std::exchange(bucket, {}));
      bytes = {};
    }
    bucket.push_back(task);
    bytes += task.source.size;
  }
  if (!bucket.empty()) {
    if (holder.tail_since == kLongAgo) holder.tail_since = now;
    const bool due = now - holder.tail_since >= plan.store.holder.bucket_tail_flush;
    if (full({1}) || due || !op.buckets.empty()) {
      op.buckets.push_back(std::move(bucket));  // also a small tail goes out in time (RC-31)
    } else {
      holder.tail = std::move(bucket);
    }
  }
  if (holder.tail.empty()) holder.tail_since = kLongAgo;
  if (!op.reports.empty()) {
    op.state = OffloadOp::State::reporting;
    op.bucket_next = static_cast<std::size_t>(-1);
    return call(Component::offload, slot, op, kMasterNode, op.reports.size());
  }
  offload_next_bucket(slot, now);
}

void Cluster::State::offload_next_bucket(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  NodeState& holder = node(op.node);
  op.has_written = false;
  op.reports.clear();
  if (op.bucket_next == op.buckets.size()) {
    op.buckets.clear();
    return offload_trim(slot, now);
  }
  Bytes bytes{0};
  const std::vector<OffloadTask>& bucket = op.buckets[op.bucket_next];
  for (const OffloadTask& task : bucket) bytes += task.source.size;
  op.doomed_buckets.clear();
  op.doomed_keys.clear();
  if (!holder.ssd.plan_room(bytes, static_cast<std::int64_t>(bucket.size()), op.doomed_buckets, op.doomed_keys)) {
    holder.accepting = false;
    return offload_report(slot, now);
  }
  if (op.doomed_buckets.empty()) return offload_write(slot, now);
  op.state = OffloadOp::State::evicting;
  call(Component::offload, slot, op, kMasterNode, op.doomed_keys.size());
}

void Cluster::State::offload_write(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  Bytes bytes{0};
  // A source that vanished while the task waited is taken out; the others go on (RC-32).
  std::vector<OffloadTask>& bucket = op.buckets[op.bucket_next];
  std::erase_if(bucket, [&](const OffloadTask& task) {
    const bool gone = !reachable(task.source);
    if (gone) op.reports.push_back({task.key, {-1}, task.version});
    return gone;
  });
  for (const OffloadTask& task : bucket) bytes += task.source.size;
  if (bucket.empty()) return offload_report(slot, now);
  op.state = OffloadOp::State::writing;
  op.waits_for =
      emit(Component::offload, slot, {.kind = EffectKind::disk_write, .node = op.node, .requests = 1, .bytes = bytes},
           [&](auto&& add) {
             for (const OffloadTask& task : bucket)
               add({.key = task.key,
                    .version = task.version,
                    .size = task.source.size,
                    .from = place_of(task.source),
                    .to = ssd_place(op.node)});
           });
}

void Cluster::State::offload_report(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  for (const OffloadTask& task : op.buckets[op.bucket_next])
    op.reports.push_back({task.key, op.has_written ? task.source.size : Bytes{-1}, task.version});
  if (op.reports.empty()) {
    ++op.bucket_next;
    return offload_next_bucket(slot, now);
  }
  op.state = OffloadOp::State::reporting;
  call(Component::offload, slot, op, kMasterNode, op.reports.size());
}

void Cluster::State::offload_after_report(std::uint32_t slot, Error error, Time now) {
  OffloadOp& op = offloads[slot];
  if (error != Error::OK && op.has_written) {
    // Whether the master heard it is unknown. The bucket goes, and the listing, if there is one, in this round too.
    NodeState& holder = node(op.node);
    for (const OffloadReport& report : op.reports) {
      if (report.size.value >= 0) holder.withdrawn.push_back(report.key);
    }
    holder.ssd.erase_bucket(op.written_bucket);
    ++counters.offload_rollbacks;
  } else if (error == Error::OK && op.has_written) {
    for (std::size_t i = 0; i < op.reports.size(); ++i) {
      if (op.reports[i].size.value >= 0 && !op.accepted[i]) node(op.node).ssd.erase(op.reports[i].key);
    }
  }
  ++op.bucket_next;
  offload_next_bucket(slot, now);
  if (error == Error::SEGMENT_NOT_FOUND) join(op.node, now);
}

void Cluster::State::offload_trim(std::uint32_t slot, Time now) {
  OffloadOp& op = offloads[slot];
  NodeState& holder = node(op.node);
  op.doomed_buckets.clear();
  op.doomed_keys.clear();
  holder.ssd.plan_watermark(plan.store.holder.ssd_high_watermark_ratio, plan.store.holder.ssd_low_watermark_ratio,
                            op.doomed_buckets, op.doomed_keys);
  std::erase_if(holder.withdrawn, [&](const ObjectKey& k) { return holder.ssd.size_of(k).has_value(); });
  if (op.doomed_buckets.empty() && holder.withdrawn.empty()) return offload_sleep(slot, now);
  op.state = OffloadOp::State::trimming;
  call(Component::offload, slot, op, kMasterNode, op.doomed_keys.size() + holder.withdrawn.size());
}

// -- liveness -----------------------------------------------------------------------------------------------

void Cluster::State::on_ping(std::uint32_t slot, const Completion& c, Time now) {
  PingOp& op = pings[slot];
  if (!op.asking) {
    op.asking = true;
    return call(Component::ping, slot, op, kMasterNode, 0);
  }
  if (c.error == Error::OK && !op.answered) {
    serve(c, [&](bool first) {
      const bool known = master.ping(op.node, now);
      if (first) op.known = known;
    });
    return reply(Component::ping, slot, op, kMasterNode);
  }
  const bool forgotten = c.error == Error::OK && !op.known;
  op.asking = false;
  sleep(Component::ping, slot, op, now + plan.store.client.ping_period);
  if (forgotten) join(op.node, now);
}

// -- joining ------------------------------------------------------------------------------------------------

/// Registers, mounts and re-reports the SSD: after a restart, or when the master has forgotten this client.
void Cluster::State::join(NodeId n, Time now) {
  (void)now;
  NodeState& joiner = node(n);
  if (joiner.joining) return;
  joiner.joining = true;
  JoinOp& op = joins[index(n)];
  begin(op, n);
  op.state = JoinOp::State::mounting;
  call(Component::join, index(n), op, kMasterNode, 0);
}

void Cluster::State::on_join(std::uint32_t slot, const Completion& c, Time now) {
  JoinOp& op = joins[slot];
  NodeState& joiner = node(op.node);
  const auto retry = [&] {
    op.state = JoinOp::State::retrying;
    sleep(Component::join, slot, op, now + seconds(1));
  };
  switch (op.state) {
    case JoinOp::State::retrying:
      op.state = JoinOp::State::mounting;
      return call(Component::join, slot, op, kMasterNode, 0);
    case JoinOp::State::mounting:
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          master.register_client(op.node, joiner.epoch, now);
          const auto mounted = master.mount_segment(op.node, joiner.segment_bytes, now);
          const Error disk = master.mount_disk(op.node, true, now);
          if (!first) return;
          if (mounted.ok()) joiner.segment = mounted.value;
          const bool fine =
              (mounted.ok() || mounted.error == Error::SEGMENT_ALREADY_EXISTS || joiner.segment_bytes.value == 0) &&
              (disk == Error::OK || disk == Error::SEGMENT_ALREADY_EXISTS);
          op.answer = fine ? Error::OK : Error::UNAVAILABLE_IN_CURRENT_STATUS;
        });
        return reply(Component::join, slot, op, kMasterNode);
      }
      if (c.error != Error::OK || op.answer != Error::OK) return retry();
      op.objects.clear();
      joiner.ssd.list(op.objects);
      op.reported = 0;
      op.state = JoinOp::State::scanning;
      break;
    case JoinOp::State::scanning:
      if (c.error == Error::OK && !op.answered) {
        const std::size_t end = std::min(op.objects.size(), op.reported + kRescanPage);
        std::vector<OffloadReport> page;
        for (std::size_t i = op.reported; i < end; ++i) {
          // What was evicted from here since the scan began is not listed any more.
          if (joiner.ssd.size_of(op.objects[i].key)) page.push_back({op.objects[i].key, op.objects[i].size, 0});
        }
        serve(c, [&](bool first) {
          const Error told = master.notify_offload(op.node, page, now);
          if (first) op.answer = told;
        });
        return reply(Component::join, slot, op, kMasterNode);
      }
      if (c.error != Error::OK || op.answer != Error::OK) return retry();
      op.reported = std::min(op.objects.size(), op.reported + kRescanPage);
      break;
  }
  if (op.reported < op.objects.size())
    return call(Component::join, slot, op, kMasterNode, op.objects.size() - op.reported);
  op.objects.clear();
  joiner.joining = false;
  // A new process starts its loops when it has joined.
  if (!offloads[slot].live && !pulls[first_puller(op.node)].live) start_periodic_work(op.node, now);
  if (plan.store.client.ping_period.ns > 0 && !pings[slot].live) {
    pings[slot].live = true;
    sleep(Component::ping, slot, pings[slot], now + plan.store.client.ping_period);
  }
}

}  // namespace kvlift
