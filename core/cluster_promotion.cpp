// Performs the promotion chain's commands for whoever runs one: a prefetch job or an on-hit round.
#include "core/cluster_state.hpp"

namespace kvlift {

bool Cluster::State::promotion_start(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                                     Time now) {
  ++counters.promotions_started;
  run.target = {};
  run.staged = {};
  run.loan = {};
  run.borrowed = false;
  Promotion::Commands commands;
  run.chain.start(commands);
  return promotion_perform(component, slot, op, run, commands, now);
}

bool Cluster::State::promotion_on(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                                  const Completion& c, Time now) {
  using Chain = Promotion::State;
  const ObjectKey& key = run.chain.key();
  Error error = c.error;
  std::vector<StagingWaiter> awake;
  switch (run.chain.state()) {
    case Chain::registering:
    case Chain::allocating:
    case Chain::committing:
    case Chain::abandoning:
      if (error == Error::OK && !op.answered) {
        serve(c, [&](bool first) {
          Error answer = Error::OK;
          Allocation target;
          if (run.chain.state() == Chain::registering) {
            answer = master.register_prefetch_task(op.node, key, now, run.ticket);
          } else if (run.chain.state() == Chain::allocating) {
            const auto allocated = master.promotion_alloc_start(op.node, key, run.chain.size(), now, run.ticket);
            answer = allocated.error;
            target = allocated.value;
          } else if (run.chain.state() == Chain::committing) {
            answer = master.notify_promotion_success(op.node, key, now, run.ticket);
          } else {
            answer = master.notify_promotion_failure(op.node, key, now, run.ticket);
          }
          if (!first) return;
          op.answer = answer;
          if (run.chain.state() == Chain::allocating) run.target = target;
        });
        reply(component, slot, op, kMasterNode);
        return false;
      }
      if (error == Error::OK) error = op.answer;
      break;
    case Chain::reading:
      if (!run.borrowed) {
        counters.bytes_read_ssd += static_cast<std::uint64_t>(c.bytes.value);
        counters.bytes_read_for_promotion += static_cast<std::uint64_t>(c.bytes.value);
        std::vector<std::uint32_t> failed;
        if (error != Error::OK || c.bytes != run.chain.size()) failed.push_back(run.loan.entry);
        node(op.node).staging.end_read(run.loan.window, failed, awake);
      }
      break;
    case Chain::writing:
      if (!reachable(run.target)) error = Error::TRANSFER_FAIL;
      // What was read decides what was written.
      if (error == Error::OK && c.bytes == run.chain.size() && (!plan.verify || node(op.node).ssd.intact(key)))
        shadow_end_write(run.target, key);
      break;
    case Chain::staging:
    case Chain::done:
      KVLIFT_ASSERT(!"no effect is under way in this state");
  }
  Promotion::Commands commands;
  run.chain.on(error, c.bytes, commands);
  const bool done = promotion_perform(component, slot, op, run, commands, now);
  wake_borrowers(op.node, awake, now);
  return done;
}

bool Cluster::State::promotion_perform(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                                       const Promotion::Commands& commands, Time now) {
  NodeState& holder = node(op.node);
  // A command that is answered here and now leads to the next ones; at most three times in a row.
  Promotion::Commands next;
  for (const Promotion::Command command : commands.view()) {
    switch (command) {
      case Promotion::Command::register_task:
      case Promotion::Command::allocate:
      case Promotion::Command::notify_success:
      case Promotion::Command::notify_failure:
        call(component, slot, op, kMasterNode, 1);
        return false;
      case Promotion::Command::stage: {
        // Demand reads wait for room, promotions do not: they are best effort.
        bool has_room = true;
        if (const auto loan = staged_elsewhere(holder, run.chain.key())) {
          run.loan = *loan;
          run.borrowed = true;
          holder.staging.join(loan->window);
        } else if (const auto staged = holder.staging.reserve(StagingArena::footprint(run.chain.size()))) {
          run.staged = *staged;
        } else {
          has_room = false;
        }
        run.chain.on(has_room ? Error::OK : Error::BUFFER_OVERFLOW, {}, next);
        return promotion_perform(component, slot, op, run, next, now);
      }
      case Promotion::Command::read_ssd:
        if (holder.ssd.size_of(run.chain.key()) != run.chain.size()) {
          run.chain.on(Error::INVALID_KEY, {}, next);
          return promotion_perform(component, slot, op, run, next, now);
        }
        if (run.borrowed) {
          ++counters.reads_shared;
          if (holder.staging.wait(run.loan.window, waiter_of(component, slot))) return false;
          run.chain.on(Error::OK, run.chain.size(), next);
          return promotion_perform(component, slot, op, run, next, now);
        }
        note_ssd_read(op.node, run.chain.key(), run.chain.size());
        open_window(holder, run);
        op.waits_for = emit(component, slot,
                            {.kind = EffectKind::disk_read,
                             .node = op.node,
                             .requests = 1,
                             .bytes = run.chain.size(),
                             .background = true,
                             .cached = cached_bytes(op.node, run.chain.key(), run.chain.size())},
                            [&](auto&& add) {
                              add({.key = run.chain.key(),
                                   .version = holder.ssd.version_of(run.chain.key()).value_or(0),
                                   .size = run.chain.size(),
                                   .from = ssd_place(op.node),
                                   .to = staging_place(op.node, holder.staging.object(run.loan).offset)});
                            });
        return false;
      case Promotion::Command::write_dram:
        shadow_begin_write(run.target);
        op.waits_for =
            emit(component, slot,
                 {.kind = EffectKind::transfer, .node = op.node, .peer = run.target.node, .bytes = run.chain.size()},
                 [&](auto&& add) {
                   add({.key = run.chain.key(),
                        .size = run.chain.size(),
                        .from = staging_place(op.node, holder.staging.object(run.loan).offset),
                        .to = place_of(run.target)});
                 });
        return false;
      case Promotion::Command::release_staging:
        promotion_abort(op, run);
        serve_readers(op.node, now);  // a demand read may have waited for this room
        break;
      case Promotion::Command::finish:
        switch (run.chain.outcome()) {
          case Promotion::Outcome::completed:
            ++counters.promotions_completed;
            break;
          case Promotion::Outcome::skipped:
            ++counters.promotions_skipped;
            break;
          case Promotion::Outcome::failed:
            ++counters.promotions_failed;
            break;
          case Promotion::Outcome::open:
            KVLIFT_ASSERT(!"a finished promotion has an outcome");
        }
        return true;
    }
  }
  return false;
}

/// What was reserved is the window of this promotion's read now.
void Cluster::State::open_window(NodeState& holder, PromotionRun& run) {
  const StagingTable::Object object{.key = run.chain.key(),
                                    .version = holder.ssd.version_of(run.chain.key()).value_or(0),
                                    .size = run.chain.size(),
                                    .offset = run.staged.offset};
  run.loan = {holder.staging.open(run.staged, std::span(&object, 1)), 0};
  run.staged = {};
}

/// Gives the staging reservation back; also when the process died in the middle, where only a new one counts.
void Cluster::State::promotion_abort(Operation& op, PromotionRun& run) {
  if (current(op.node, op.epoch)) {
    StagingTable& staging = node(op.node).staging;
    staging.release(run.staged);
    if (run.loan.window != StagingTable::kNoWindow) staging.leave(run.loan.window);
  }
  run.staged = {};
  run.loan = {};
}

}  // namespace kvlift
