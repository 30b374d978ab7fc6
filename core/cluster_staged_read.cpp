// One holder's part of a get: the holder stages the keys from its SSD, the reader pulls them (section 3.6).
//
//   asking --> worker_wait --> staging_wait --> reading --> answering --> pulling --> (next window) --> done
//
// Keys that do not fit the staging arena together are read in windows (RC-52). A missing or failed key fails alone
// unless the original's behaviour is asked for (RC-18). Staging is held until the pull has ended, however long it
// takes (RC-59); the original's discard of late reads is a legacy option.
#include <algorithm>

#include "core/cluster_state.hpp"

namespace kvlift {

void Cluster::State::on_staged_read(std::uint32_t slot, const Completion& c, Time now) {
  StagedReadOp& op = staged_reads[slot];
  const bool reader_lives = current(op.node, op.epoch);
  const bool holder_lives = current(op.holder, op.holder_epoch);
  if (!reader_lives || !holder_lives) {
    return staged_read_fail(slot, holder_lives ? Error::RPC_FAIL : Error::RPC_TIMEOUT, now);
  }
  switch (op.state) {
    case StagedReadOp::State::asking:
      if (c.error != Error::OK) return staged_read_fail(slot, c.error, now);
      return staged_read_arrived(slot, now);
    case StagedReadOp::State::reading: {
      NodeState& holder = node(op.holder);
      --holder.read_active;
      op.has_worker = false;
      counters.bytes_read_ssd += static_cast<std::uint64_t>(c.bytes.value);
      if (c.error == Error::OK && !c.failed.empty()) {
        for (const std::uint32_t i : c.failed) {
          GetOp::Item& item = gets[op.parent].items[op.items[op.window_begin + i]];
          item.outcome.error = Error::FILE_READ_FAIL;
          item.settled = true;
        }
        op.window_bytes = c.bytes;
      } else if (c.error != Error::OK || c.bytes != op.window_bytes) {
        // The device cut the window short: whole keys that came before the cut are good, the rest failed.
        Bytes left = c.error == Error::OK ? c.bytes : Bytes{0};
        Bytes good{0};
        GetOp& get = gets[op.parent];
        for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
          GetOp::Item& item = get.items[op.items[i]];
          if (item.settled) continue;
          left -= item.view.size;
          if (left.value >= 0) {
            good += item.view.size;
          } else {
            item.outcome.error = Error::FILE_READ_FAIL;
            item.settled = true;
          }
        }
        op.window_bytes = good;
      }
      op.state = StagedReadOp::State::answering;
      reply(Component::staged_read, slot, op, op.holder);
      return serve_readers(op.holder, now);
    }
    case StagedReadOp::State::answering:
      if (c.error != Error::OK) return staged_read_fail(slot, c.error, now);
      op.state = StagedReadOp::State::pulling;
      op.waits_for = emit(Component::staged_read, slot,
                          {.kind = EffectKind::transfer,
                           .node = op.holder,
                           .peer = op.node,
                           .requests = static_cast<std::int32_t>(op.window_end - op.window_begin),
                           .bytes = op.window_bytes,
                           .accelerator = op.node},
                          [&](auto&& add) {
                            const GetOp& get = gets[op.parent];
                            std::int64_t offset = op.staged.offset;
                            for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
                              const GetOp::Item& item = get.items[op.items[i]];
                              if (!item.settled)
                                add({.key = item.item.key,
                                     .size = item.view.size,
                                     .from = staging_place(op.holder, offset),
                                     .to = user_place(op.node, get.token, op.items[i])});
                              offset += StagingArena::footprint(item.view.size).value;
                            }
                          });
      return;
    case StagedReadOp::State::pulling: {
      const bool whole = c.error == Error::OK && c.bytes == op.window_bytes;
      const bool late = now - op.staged_at >= plan.store.holder.staging_ttl;
      if (late) ++counters.staged_reads_late;
      GetOp& get = gets[op.parent];
      for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
        GetOp::Item& item = get.items[op.items[i]];
        if (item.settled) continue;
        item.settled = true;
        if (whole && plan.verify && !node(op.holder).ssd.intact(item.item.key)) ++counters.corrupt_reads;
        if (!whole) {
          item.outcome.error = c.error == Error::OK ? Error::TRANSFER_FAIL : c.error;
        } else if (late && plan.store.legacy.discard_late_staged_reads) {
          item.outcome.error = Error::OBJECT_HAS_LEASE;
        }
      }
      staged_read_release(slot, now);
      op.window_begin = op.window_end;
      if (op.window_begin == op.items.size()) return staged_read_end(slot, now);
      // The next window asks again: the holder may serve others in between.
      op.state = StagedReadOp::State::asking;
      op.answered = false;
      return call(Component::staged_read, slot, op, op.holder, op.items.size() - op.window_begin);
    }
    case StagedReadOp::State::refused:
      return staged_read_fail(slot, op.answer, now);
    case StagedReadOp::State::worker_wait:
    case StagedReadOp::State::staging_wait:
      break;
  }
  KVLIFT_ASSERT(!"a waiting read has no effect under way");
}

/// The request has reached the holder: keys it does not have fail, the others wait for a worker.
void Cluster::State::staged_read_arrived(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  NodeState& holder = node(op.holder);
  GetOp& get = gets[op.parent];
  std::size_t kept = op.window_begin;
  for (std::size_t i = op.window_begin; i < op.items.size(); ++i) {
    GetOp::Item& item = get.items[op.items[i]];
    const auto size = holder.ssd.size_of(item.item.key);
    if (!size || *size != item.view.size) {
      item.outcome.error = Error::INVALID_KEY;
    } else if (!holder.staging.fits_ever(*size)) {
      item.outcome.error = Error::INVALID_PARAMS;
      ++counters.staging_overflows;
    } else {
      op.items[kept++] = op.items[i];
      continue;
    }
    item.settled = true;
  }
  op.items.resize(kept);
  if (op.window_begin == op.items.size()) {
    op.window_bytes = {};
    op.window_end = op.window_begin;
    op.state = StagedReadOp::State::answering;
    return reply(Component::staged_read, slot, op, op.holder);
  }
  op.state = StagedReadOp::State::worker_wait;
  holder.worker_waiters.push_back(slot);
  serve_readers(op.holder, now);
}

/// Gives free workers and staging room to waiting reads, first come first served.
void Cluster::State::serve_readers(NodeId holder_id, Time now) {
  NodeState& holder = node(holder_id);
  while (!holder.staging_waiters.empty()) {
    const std::uint32_t slot = holder.staging_waiters.front();
    staged_read_window(slot, now);
    if (staged_reads[slot].state == StagedReadOp::State::staging_wait) return;
    holder.staging_waiters.pop_front();
  }
  while (!holder.worker_waiters.empty() && holder.read_active < plan.store.holder.file_read_workers) {
    const std::uint32_t slot = holder.worker_waiters.front();
    holder.worker_waiters.pop_front();
    ++holder.read_active;
    staged_reads[slot].has_worker = true;
    staged_read_window(slot, now);
    if (staged_reads[slot].state != StagedReadOp::State::staging_wait) continue;
    ++counters.staging_waits;
    holder.staging_waiters.push_back(slot);
    return;
  }
}

/// Stages as many keys as fit the arena and starts the read; waits when not even they fit now.
void Cluster::State::staged_read_window(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  NodeState& holder = node(op.holder);
  const GetOp& get = gets[op.parent];
  Bytes bytes{0};
  Bytes cached{0};
  Bytes footprint{0};
  std::size_t end = op.window_begin;
  for (; end < op.items.size(); ++end) {
    const Bytes size = get.items[op.items[end]].view.size;
    if (footprint + StagingArena::footprint(size) > holder.staging.capacity()) break;
    footprint += StagingArena::footprint(size);
    bytes += size;
  }
  const auto staged = holder.staging.reserve(footprint);
  if (!staged) {
    op.state = StagedReadOp::State::staging_wait;
    return;
  }
  for (std::size_t i = op.window_begin; i < end; ++i) {
    const GetOp::Item& item = get.items[op.items[i]];
    note_ssd_read(op.holder, item.item.key, item.view.size);
    cached += cached_bytes(op.holder, item.item.key, item.view.size);
  }
  op.window_end = end;
  op.window_bytes = bytes;
  op.staged = *staged;
  op.staged_at = now;
  op.state = StagedReadOp::State::reading;
  op.waits_for = emit(Component::staged_read, slot,
                      {.kind = EffectKind::disk_read,
                       .node = op.holder,
                       .requests = static_cast<std::int32_t>(end - op.window_begin),
                       .bytes = bytes,
                       .cached = cached},
                      [&](auto&& add) {
                        std::int64_t offset = op.staged.offset;
                        for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
                          const GetOp::Item& item = get.items[op.items[i]];
                          add({.key = item.item.key,
                               .version = holder.ssd.version_of(item.item.key).value_or(0),
                               .size = item.view.size,
                               .from = ssd_place(op.holder),
                               .to = staging_place(op.holder, offset)});
                          offset += StagingArena::footprint(item.view.size).value;
                        }
                      });
}

/// Gives back what the read holds at its holder, if that process is still the one that gave it.
void Cluster::State::staged_read_release(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  if (current(op.holder, op.holder_epoch)) {
    NodeState& holder = node(op.holder);
    if (op.has_worker) --holder.read_active;
    holder.staging.release(op.staged);
    op.has_worker = false;
    serve_readers(op.holder, now);
  }
  op.has_worker = false;
  op.staged = {};
}

void Cluster::State::staged_read_fail(std::uint32_t slot, Error error, Time now) {
  ++counters.staged_reads_failed;
  StagedReadOp& op = staged_reads[slot];
  GetOp& get = gets[op.parent];
  for (std::size_t i = op.window_begin; i < op.items.size(); ++i) {
    GetOp::Item& item = get.items[op.items[i]];
    if (item.settled) continue;
    item.outcome.error = error;
    item.settled = true;
  }
  staged_read_release(slot, now);
  staged_read_end(slot, now);
}

void Cluster::State::staged_read_end(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  GetOp& get = gets[op.parent];
  if (plan.store.legacy.endpoint_fails_as_one) {
    Error worst = Error::OK;
    const auto of_this_read = [&](const GetOp::Item& item) {
      return item.outcome.tier == Tier::disk && item.view.holder == op.holder;
    };
    for (const GetOp::Item& item : get.items) {
      if (of_this_read(item) && item.outcome.error != Error::OK) worst = item.outcome.error;
    }
    for (GetOp::Item& item : get.items) {
      if (of_this_read(item) && worst != Error::OK) item.outcome.error = worst;
    }
  }
  const std::uint32_t parent = op.parent;
  staged_reads.release(slot);
  get_part_ended(parent, now);
}

}  // namespace kvlift
