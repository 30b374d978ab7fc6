// Batch put and remove. A put that finds no room tries again for a while, so that a prompt's blocks stay a prefix
// (RC-44); what still has no room is reported key by key.
#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

void Cluster::put(NodeId node, OpToken token, std::span<const KeyItem> items, Time now) {
  State& s = *state_;
  (void)now;
  ++s.open_operations;
  ++s.counters.puts;
  const std::uint32_t slot = s.puts.acquire();
  PutOp& op = s.puts[slot];
  s.begin(op, node);
  op.token = token;
  op.state = PutOp::State::starting;
  op.tries_left = s.plan.store.client.put_retry_max;
  op.writes.clear();
  op.items.clear();
  for (const KeyItem& item : items) op.items.push_back({.item = item});
  s.call(Component::put, slot, op, kMasterNode, items.size());
}

void Cluster::State::on_put(std::uint32_t slot, std::uint32_t sequence, const Completion& c, Time now) {
  PutOp& op = puts[slot];
  const bool alive = current(op.node, op.epoch);
  if (TransferSet::Part part; op.writes.take(sequence, part)) {
    const bool whole = alive && c.error == Error::OK && c.bytes == part.bytes && reachable(part.place);
    for (PutOp::Item& item : op.items) {
      for (const Allocation& target : item.targets) {
        if (target.segment != part.place.segment) continue;
        if (whole) {
          shadow_end_write(target, item.item.key);
        } else {
          item.outcome.error = c.error == Error::OK ? Error::TRANSFER_FAIL : c.error;
        }
      }
    }
    if (!op.writes.empty()) return;
    if (!alive) return put_finish(slot, Error::RPC_FAIL, now);
    op.state = PutOp::State::ending;
    return call(Component::put, slot, op, kMasterNode, op.items.size());
  }
  if (op.waits_for != sequence) {
    ++counters.stale_completions;
    return;
  }
  op.waits_for = 0;
  if (!alive) return put_finish(slot, Error::RPC_FAIL, now);
  switch (op.state) {
    case PutOp::State::starting:
      if (c.error != Error::OK) {
        // The master may hold puts of ours that nobody will end: they are replaced or reaped there.
        return put_finish(slot, c.error, now);
      }
      if (!op.answered) {
        serve(c, [&](bool first) {
          for (PutOp::Item& item : op.items) {
            if (item.started || item.outcome.error == Error::OBJECT_ALREADY_EXISTS) continue;
            auto started = master.put_start(op.node, item.item.key, item.item.size, {.preferred = op.node}, now);
            if (!first) continue;
            item.outcome.error = started.error;
            item.started = started.ok();
            item.targets = std::move(started.value);
          }
        });
        return reply(Component::put, slot, op, kMasterNode);
      }
      return put_start_writes(slot, now);
    case PutOp::State::retry_wait:
      op.state = PutOp::State::starting;
      return call(Component::put, slot, op, kMasterNode, op.items.size());
    case PutOp::State::ending:
      if (c.error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          for (PutOp::Item& item : op.items) {
            if (!item.started) continue;
            const std::uint64_t version = item.targets.front().version;
            const Error ended = item.outcome.error == Error::OK
                                    ? master.put_end(op.node, item.item.key, now, version)
                                    : master.put_revoke(op.node, item.item.key, now, version);
            if (first && item.outcome.error == Error::OK) item.outcome.error = ended;
          }
        });
        return reply(Component::put, slot, op, kMasterNode);
      }
      return put_finish(slot, c.error, now);
    case PutOp::State::writing:
      break;
  }
  KVLIFT_ASSERT(!"a writing put waits for transfers only");
}

void Cluster::State::put_start_writes(std::uint32_t slot, Time now) {
  PutOp& op = puts[slot];
  const bool refused = std::any_of(op.items.begin(), op.items.end(), [](const PutOp::Item& item) {
    return item.outcome.error == Error::NO_AVAILABLE_HANDLE;
  });
  if (refused && op.tries_left > 0) {
    --op.tries_left;
    ++counters.put_retries;
    op.state = PutOp::State::retry_wait;
    return sleep(Component::put, slot, op, now + plan.store.client.put_retry_delay);
  }
  struct Target {
    Allocation place;
    Bytes bytes;
    std::int32_t keys = 0;
  };
  std::vector<Target> targets;  // by segment, in order of first key
  for (const PutOp::Item& item : op.items) {
    if (!item.started) continue;
    for (const Allocation& target : item.targets) {
      shadow_begin_write(target);
      const auto at = std::find_if(targets.begin(), targets.end(),
                                   [&](const Target& t) { return t.place.segment == target.segment; });
      if (at == targets.end()) {
        targets.push_back({target, target.size, 1});
      } else {
        at->bytes += target.size;
        ++at->keys;
      }
    }
  }
  if (targets.empty()) return put_finish(slot, Error::OK, now);
  op.state = PutOp::State::writing;
  for (const auto& [place, bytes, keys] : targets) {
    const std::uint32_t sequence = emit(Component::put, slot,
                                        {.kind = EffectKind::transfer,
                                         .node = op.node,
                                         .peer = place.node,
                                         .requests = keys,
                                         .bytes = bytes,
                                         .accelerator = op.node},
                                        [&, segment = place.segment](auto&& add) {
                                          for (std::size_t i = 0; i < op.items.size(); ++i) {
                                            const PutOp::Item& item = op.items[i];
                                            for (const Allocation& target : item.targets) {
                                              if (!item.started || target.segment != segment) continue;
                                              add({.key = item.item.key,
                                                   .size = target.size,
                                                   .from = user_place(op.node, op.token, i),
                                                   .to = place_of(target)});
                                            }
                                          }
                                        });
    op.writes.add({sequence, place, bytes});
  }
}

void Cluster::State::put_finish(std::uint32_t slot, Error error, Time now) {
  (void)now;
  PutOp& op = puts[slot];
  OpResult& r = result(OpResult::Kind::put, op.token, op.node, error);
  for (const PutOp::Item& item : op.items) {
    KeyOutcome outcome = item.outcome;
    if (outcome.error == Error::OBJECT_ALREADY_EXISTS) {
      outcome.error = Error::OK;  // engines treat it as stored (section 2.2)
      ++counters.put_keys_exist;
    } else if (outcome.error == Error::OK && error == Error::OK) {
      ++counters.put_keys_stored;
    } else {
      ++counters.put_keys_refused;
    }
    r.keys.push_back(outcome);
  }
  puts.release(slot);
}

void Cluster::remove(NodeId node, OpToken token, const ObjectKey& key, Time now) {
  State& s = *state_;
  (void)now;
  ++s.open_operations;
  const std::uint32_t slot = s.removes.acquire();
  RemoveOp& op = s.removes[slot];
  s.begin(op, node);
  op.token = token;
  op.key = key;
  s.call(Component::remove, slot, op, kMasterNode, 1);
}

void Cluster::State::on_remove(std::uint32_t slot, const Completion& c, Time now) {
  RemoveOp& op = removes[slot];
  Error error = current(op.node, op.epoch) ? c.error : Error::RPC_FAIL;
  if (error == Error::OK && !op.answered) {
    serve(c, [&](bool first) {
      const Error removed = master.remove(op.key, false, now);
      if (first) op.answer = removed;
    });
    return reply(Component::remove, slot, op, kMasterNode);
  }
  result(OpResult::Kind::remove, op.token, op.node, error == Error::OK ? op.answer : error);
  removes.release(slot);
}

}  // namespace kvlift
