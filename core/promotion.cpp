#include "core/promotion.hpp"

#include "core/assert.hpp"

namespace kvlift {

void Promotion::advance(State next, Command command, Commands& out) {
  state_ = next;
  out.append(command);
}

void Promotion::end(Outcome outcome, Commands& out) {
  outcome_ = outcome;
  advance(State::done, Command::finish, out);
}

void Promotion::abandon(Error why, Commands& out) {
  error_ = why;
  const bool staged = state_ == State::reading || state_ == State::writing || state_ == State::committing;
  if (staged) out.append(Command::release_staging);
  advance(State::abandoning, Command::notify_failure, out);
}

void Promotion::start(Commands& out) {
  KVLIFT_ASSERT(state_ == State::registering && outcome_ == Outcome::open);
  if (origin_ == Origin::prefetch) return out.append(Command::register_task);
  // A size that is not positive is reported, not skipped: a silent skip leaks the task (RC-24).
  if (size_.value <= 0) return abandon(Error::INVALID_PARAMS, out);
  advance(State::allocating, Command::allocate, out);
}

void Promotion::on(Error error, Bytes moved, Commands& out) {
  switch (state_) {
    case State::registering:
      if (error == Error::OK) return advance(State::allocating, Command::allocate, out);
      if (error == Error::PROMOTION_ALREADY_EXISTS) return end(Outcome::skipped, out);
      if (error == Error::RPC_FAIL || error == Error::RPC_TIMEOUT) return abandon(error, out);
      error_ = error;
      return end(Outcome::failed, out);
    case State::allocating:
      if (error == Error::OK) return advance(State::staging, Command::stage, out);
      dram_pressure_ = error == Error::NO_AVAILABLE_HANDLE;
      return abandon(error, out);
    case State::staging:
      if (error == Error::OK) return advance(State::reading, Command::read_ssd, out);
      return abandon(error, out);
    case State::reading:
      if (error == Error::OK && moved == size_) return advance(State::writing, Command::write_dram, out);
      return abandon(error == Error::OK ? Error::FILE_READ_FAIL : error, out);
    case State::writing:
      if (error == Error::OK && moved == size_) return advance(State::committing, Command::notify_success, out);
      return abandon(error == Error::OK ? Error::TRANSFER_FAIL : error, out);
    case State::committing:
      if (error != Error::OK) return abandon(error, out);
      out.append(Command::release_staging);
      return end(Outcome::completed, out);
    case State::abandoning:
      return end(Outcome::failed, out);
    case State::done:
      break;
  }
  KVLIFT_ASSERT(!"an event after the end");
}

}  // namespace kvlift
