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
    const NodeId holder = op.holder;
    std::vector<StagingWaiter> awake;
    if (holder_lives && op.state == StagedReadOp::State::reading && op.reads) staged_read_landed(slot, c, awake);
    staged_read_fail(slot, holder_lives ? Error::RPC_FAIL : Error::RPC_TIMEOUT, now);
    return wake_borrowers(holder, awake, now);
  }
  switch (op.state) {
    case StagedReadOp::State::asking:
      if (c.error != Error::OK) return staged_read_fail(slot, c.error, now);
      return staged_read_arrived(slot, now);
    case StagedReadOp::State::reading: {
      std::vector<StagingWaiter> awake;
      staged_read_landed(slot, c, awake);
      if (--op.reads_pending == 0) staged_read_gathered(slot, now);
      serve_readers(op.holder, now);
      return wake_borrowers(op.holder, awake, now);
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
                            const StagingTable& staging = node(op.holder).staging;
                            for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
                              const GetOp::Item& item = get.items[op.items[i]];
                              if (item.settled) continue;
                              const std::int64_t offset = staging.object(op.loans[i - op.window_begin]).offset;
                              add({.key = item.item.key,
                                   .size = item.view.size,
                                   .from = staging_place(op.holder, offset),
                                   .to = user_place(op.node, get.token, op.items[i])});
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
  if (!std::exchange(op.arrived, true)) ++holder.reads_open;
  std::size_t kept = op.window_begin;
  for (std::size_t i = op.window_begin; i < op.items.size(); ++i) {
    GetOp::Item& item = get.items[op.items[i]];
    const auto size = holder.ssd.size_of(item.item.key);
    if (!size || *size != item.view.size) {
      item.outcome.error = Error::INVALID_KEY;
    } else if (!holder.staging.arena().fits_ever(*size)) {
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
  // What others have staged, or are staging, needs neither a worker nor room.
  const auto is_staged = [&](std::uint32_t i) { return staged_elsewhere(holder, get.items[i].item.key).has_value(); };
  if (std::all_of(op.items.begin() + static_cast<std::ptrdiff_t>(op.window_begin), op.items.end(), is_staged))
    return staged_read_window(slot, now);
  op.state = StagedReadOp::State::worker_wait;
  holder.worker_waiters.push_back(slot);
  serve_readers(op.holder, now);
}

/// The device has done what this read asked of it; its borrowers are to be woken.
void Cluster::State::staged_read_landed(std::uint32_t slot, const Completion& c, std::vector<StagingWaiter>& awake) {
  StagedReadOp& op = staged_reads[slot];
  NodeState& holder = node(op.holder);
  --holder.read_active;
  op.has_worker = false;
  counters.bytes_read_ssd += static_cast<std::uint64_t>(c.bytes.value);
  const std::uint32_t own = op.windows.back();
  std::vector<std::uint32_t> failed;
  if (c.error == Error::OK && !c.failed.empty()) {
    failed.assign(c.failed.begin(), c.failed.end());
  } else {
    // The device may have cut the window short: whole objects that came before the cut are good, the rest failed.
    Bytes left = c.error == Error::OK ? c.bytes : Bytes{0};
    for (std::uint32_t i = 0; i < holder.staging.objects_of(own).size(); ++i) {
      left -= holder.staging.objects_of(own)[i].size;
      if (left.value < 0) failed.push_back(i);
    }
  }
  holder.staging.end_read(own, failed, awake);
}

/// Every key of the window stands in staging or has failed.
void Cluster::State::staged_read_gathered(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  GetOp& get = gets[op.parent];
  op.window_bytes = {};
  for (std::size_t i = op.window_begin; i < op.window_end; ++i) {
    GetOp::Item& item = get.items[op.items[i]];
    if (node(op.holder).staging.object(op.loans[i - op.window_begin]).good) {
      op.window_bytes += item.view.size;
    } else {
      item.outcome.error = Error::FILE_READ_FAIL;
      item.settled = true;
    }
  }
  op.state = StagedReadOp::State::answering;
  reply(Component::staged_read, slot, op, op.holder);
  get_follow(slot, now);
}

/// Their reads have ended; each looks for itself what it got.
void Cluster::State::wake_borrowers(NodeId holder, const std::vector<StagingWaiter>& awake, Time now) {
  for (const StagingWaiter waiter : awake) {
    const Borrower b = borrower_of(waiter);
    if (b.component == Component::staged_read) {
      StagedReadOp& op = staged_reads[b.slot];
      if (--op.reads_pending > 0) continue;
      if (current(op.node, op.epoch)) {
        staged_read_gathered(b.slot, now);
      } else {
        staged_read_fail(b.slot, Error::RPC_FAIL, now);
      }
      continue;
    }
    const PromotionRun& run = b.component == Component::job ? jobs[b.slot].run : pulls[b.slot].run;
    const bool good = node(holder).staging.object(run.loan).good;
    const Completion c{.error = good ? Error::OK : Error::FILE_READ_FAIL, .bytes = good ? run.chain.size() : Bytes{0}};
    b.component == Component::job ? on_job(b.slot, c, now) : on_pull(b.slot, c, now);
  }
}

/// Where these very bytes stand already, or are about to.
std::optional<StagingTable::Loan> Cluster::State::staged_elsewhere(const NodeState& holder,
                                                                   const ObjectKey& key) const {
  const auto size = holder.ssd.size_of(key);
  if (!size) return std::nullopt;
  return holder.staging.find(key, holder.ssd.version_of(key).value_or(0), *size);
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

/// Joins the windows of the keys below `limit` that are staged, and lists the others as far as they fit the arena
/// together, with offsets from the start of a window of their own.
std::vector<StagingTable::Object> Cluster::State::staged_read_collect(std::uint32_t slot, std::size_t limit) {
  StagedReadOp& op = staged_reads[slot];
  NodeState& holder = node(op.holder);
  const GetOp& get = gets[op.parent];
  std::vector<StagingTable::Object> own;
  Bytes footprint{0};
  op.loans.clear();
  op.windows.clear();
  for (op.window_end = op.window_begin; op.window_end < limit; ++op.window_end) {
    const GetOp::Item& item = get.items[op.items[op.window_end]];
    if (const auto loan = staged_elsewhere(holder, item.item.key)) {
      op.loans.push_back(*loan);
      if (std::find(op.windows.begin(), op.windows.end(), loan->window) != op.windows.end()) continue;
      op.windows.push_back(loan->window);
      holder.staging.join(loan->window);  // before room is made for others
      continue;
    }
    const Bytes size = item.view.size;
    if (footprint + StagingArena::footprint(size) > holder.staging.arena().capacity()) break;
    op.loans.push_back({StagingTable::kNoWindow, static_cast<std::uint32_t>(own.size())});
    own.push_back({.key = item.item.key,
                   .version = holder.ssd.version_of(item.item.key).value_or(0),
                   .size = size,
                   .offset = footprint.value});
    footprint += StagingArena::footprint(size);
  }
  return own;
}

/// Takes as many keys as fit the arena: copies of those that are staged, and one read of the others. Waits when there
/// is no room for them now.
void Cluster::State::staged_read_window(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  NodeState& holder = node(op.holder);
  const auto footprint_of = [](const std::vector<StagingTable::Object>& objects) {
    Bytes sum{0};
    for (const StagingTable::Object& object : objects) sum += StagingArena::footprint(object.size);
    return sum;
  };
  std::vector<StagingTable::Object> own = staged_read_collect(slot, op.items.size());
  std::optional<Staged> staged;
  if (!own.empty()) staged = holder.staging.reserve(footprint_of(own));
  if (!own.empty() && !staged && own.size() < op.loans.size()) {
    // What it borrows may itself stand in the way: one kind of key at a time, as they come.
    const auto is_own = [](const StagingTable::Loan& l) { return l.window == StagingTable::kNoWindow; };
    const bool first = is_own(op.loans.front());
    const auto other = std::find_if(op.loans.begin(), op.loans.end(), [&](auto& l) { return is_own(l) != first; });
    const std::size_t limit = op.window_begin + static_cast<std::size_t>(other - op.loans.begin());
    staged_read_leave(slot);
    own = staged_read_collect(slot, limit);
    if (!own.empty()) staged = holder.staging.reserve(footprint_of(own));
  }
  op.reads = !own.empty();
  op.staged_at = now;
  if (op.reads && !staged) {
    staged_read_leave(slot);
    op.state = StagedReadOp::State::staging_wait;
    return;
  }
  Bytes bytes{0};
  if (op.reads) {
    for (StagingTable::Object& object : own) {
      object.offset += staged->offset;
      bytes += object.size;
    }
    op.windows.push_back(holder.staging.open(*staged, own));
  } else if (op.has_worker) {
    --holder.read_active;
    op.has_worker = false;
  }
  op.state = StagedReadOp::State::reading;
  op.reads_pending = op.reads ? 1 : 0;
  for (std::size_t w = 0; w + (op.reads ? 1 : 0) < op.windows.size(); ++w) {
    if (holder.staging.wait(op.windows[w], waiter_of(Component::staged_read, slot))) ++op.reads_pending;
  }
  counters.reads_shared += op.loans.size() - own.size();
  if (!op.reads) {
    if (op.reads_pending == 0) staged_read_gathered(slot, now);
    return;
  }
  Bytes cached{0};
  for (StagingTable::Loan& loan : op.loans) {
    if (loan.window == StagingTable::kNoWindow) loan.window = op.windows.back();
  }
  for (const StagingTable::Object& object : own) {
    note_ssd_read(op.holder, object.key, object.size);
    cached += cached_bytes(op.holder, object.key, object.size);
  }
  op.waits_for = emit(Component::staged_read, slot,
                      {.kind = EffectKind::disk_read,
                       .node = op.holder,
                       .requests = static_cast<std::int32_t>(own.size()),
                       .bytes = bytes,
                       .cached = cached},
                      [&](auto&& add) {
                        for (const StagingTable::Object& object : own) {
                          add({.key = object.key,
                               .version = object.version,
                               .size = object.size,
                               .from = ssd_place(op.holder),
                               .to = staging_place(op.holder, object.offset)});
                        }
                      });
}

/// Is a user of no window any more.
void Cluster::State::staged_read_leave(std::uint32_t slot) {
  StagedReadOp& op = staged_reads[slot];
  for (const std::uint32_t window : op.windows)
    node(op.holder).staging.leave(window, waiter_of(Component::staged_read, slot));
  op.windows.clear();
  op.reads = false;
}

/// Gives back what the read holds at its holder, if that process is still the one that gave it.
void Cluster::State::staged_read_release(std::uint32_t slot, Time now) {
  StagedReadOp& op = staged_reads[slot];
  if (current(op.holder, op.holder_epoch)) {
    NodeState& holder = node(op.holder);
    if (op.has_worker) --holder.read_active;
    staged_read_leave(slot);
    op.has_worker = false;
    serve_readers(op.holder, now);
  }
  op.has_worker = false;
  op.windows.clear();
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
  for (GetOp::Item& item : get.items) {  // further parts would fare no better
    if (item.settled || item.in_read || item.outcome.tier != Tier::disk || item.view.holder != op.holder) continue;
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
  get_follow(slot, now);
  const std::uint32_t parent = op.parent;
  const NodeId holder = op.holder;
  const bool leaves = op.arrived && current(holder, op.holder_epoch);
  staged_reads.release(slot);
  if (leaves) --node(holder).reads_open;
  get_part_ended(parent, now);
  if (leaves) resume_yielding(holder, now);
}

}  // namespace kvlift
