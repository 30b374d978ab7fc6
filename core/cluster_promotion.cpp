// Performs the promotion chain's commands for whoever runs one: a prefetch job or an on-hit round.
#include "core/cluster_state.hpp"

namespace kvlift {

bool Cluster::State::promotion_start(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                                     Time now) {
  ++counters.promotions_started;
  run.target = {};
  run.staged = {};
  Promotion::Commands commands;
  run.chain.start(commands);
  return promotion_perform(component, slot, op, run, commands, now);
}

bool Cluster::State::promotion_on(Component component, std::uint32_t slot, Operation& op, PromotionRun& run,
                                  const Completion& c, Time now) {
  using Chain = Promotion::State;
  const ObjectKey& key = run.chain.key();
  Error error = c.error;
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
      counters.bytes_read_ssd += static_cast<std::uint64_t>(c.bytes.value);
      counters.bytes_read_for_promotion += static_cast<std::uint64_t>(c.bytes.value);
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
  return promotion_perform(component, slot, op, run, commands, now);
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
        const Bytes footprint = StagingArena::footprint(run.chain.size());
        const auto staged = holder.staging.reserve(footprint);
        if (staged) run.staged = *staged;
        run.chain.on(staged ? Error::OK : Error::BUFFER_OVERFLOW, {}, next);
        return promotion_perform(component, slot, op, run, next, now);
      }
      case Promotion::Command::read_ssd:
        if (holder.ssd.size_of(run.chain.key()) != run.chain.size()) {
          run.chain.on(Error::INVALID_KEY, {}, next);
          return promotion_perform(component, slot, op, run, next, now);
        }
        note_ssd_read(op.node, run.chain.key(), run.chain.size());
        op.waits_for = emit(component, slot,
                            {.kind = EffectKind::disk_read,
                             .node = op.node,
                             .requests = 1,
                             .bytes = run.chain.size(),
                             .cached = cached_bytes(op.node, run.chain.key(), run.chain.size())},
                            [&](auto&& add) {
                              add({.key = run.chain.key(),
                                   .version = holder.ssd.version_of(run.chain.key()).value_or(0),
                                   .size = run.chain.size(),
                                   .from = ssd_place(op.node),
                                   .to = staging_place(op.node, run.staged.offset)});
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
                        .from = staging_place(op.node, run.staged.offset),
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

/// Gives the staging reservation back; also when the process died in the middle, where only a new one counts.
void Cluster::State::promotion_abort(Operation& op, PromotionRun& run) {
  if (current(op.node, op.epoch)) node(op.node).staging.release(run.staged);
  run.staged = {};
}

}  // namespace kvlift
