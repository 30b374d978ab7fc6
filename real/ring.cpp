#include "real/ring.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "real/descriptor.hpp"
#include "real/error.hpp"
#include "real/io_error.hpp"

namespace kvlift::real {
namespace {

constexpr std::uint64_t kAlignment = 4096;
/// Times in a row that one piece may be told to come again (EAGAIN, EINTR) before that is an error.
constexpr std::uint32_t kRetriesMax = 1000;
/// `user` of a cancellation, whose result nobody needs.
constexpr std::uint64_t kCancellation = ~0ULL;

}  // namespace

Ring::Ring(std::unique_ptr<Kernel> kernel, const RingSettings& settings)
    : kernel_(std::move(kernel)), settings_(settings) {
  KVLIFT_ASSERT(settings_.depth > 0 && settings_.background_depth > 0 && settings_.piece_bytes % kAlignment == 0);
  requests_.resize(settings_.requests_max);
  pieces_.resize(settings_.depth);
  for (std::uint32_t i = settings_.requests_max; i > 0; --i) free_requests_.push_back(i - 1);
  for (std::uint32_t i = settings_.depth; i > 0; --i) free_pieces_.push_back(i - 1);
  waiting_.reserve(settings_.depth);
  again_.reserve(settings_.depth);
  settled_.reserve(settings_.requests_max);
  results_.resize(settings_.depth);
  handed_in_.reserve(settings_.hand_in_max);
  taken_.reserve(settings_.hand_in_max);
}

Ring::~Ring() {
  std::vector<RingDone> nobody;
  for (std::uint32_t r = 0; r < requests_.size(); ++r) {
    if (requests_[r].used) stop(r);
  }
  drain(kLongAgo, nobody);
}

void Ring::register_memory(std::span<const Memory> memory) {
  const std::uint64_t longest = kernel_->range_bytes_max();
  if (longest == 0) return;
  std::vector<Memory> parts;
  for (const Memory& range : memory) {
    for (std::size_t at = 0; at < range.bytes; at += longest)
      parts.push_back({range.data + at, static_cast<std::size_t>(std::min<std::uint64_t>(longest, range.bytes - at))});
  }
  std::sort(parts.begin(), parts.end(), [](const Memory& a, const Memory& b) { return a.data < b.data; });
  const int error = kernel_->register_memory(parts);
  if (error == 0) {
    for (const Memory& part : parts) ranges_.push_back({part.data, part.data + part.bytes});
    fixed_ = true;
    return;
  }
  if (settings_.strict) throw RealError("memory cannot be registered with the ring", -error);
  ++counters_.steps_unregistered;
  if (on_step_down) on_step_down(std::string("ring: buffers are not registered: ") + std::strerror(-error));
}

int Ring::attach(int fd, bool direct) {
  const int file = kernel_->add_file(fd);
  if (file < 0) return file;
  if (files_.size() <= static_cast<std::size_t>(file)) files_.resize(static_cast<std::size_t>(file) + 1);
  files_[static_cast<std::size_t>(file)] = {.fd = fd, .used = true, .direct = direct};
  return file;
}

void Ring::detach(int file) {
  kernel_->remove_file(file);
  files_[static_cast<std::size_t>(file)] = {};
}

bool Ring::start(const RingRequest& request) {
  if (free_requests_.empty()) return false;
  const std::uint32_t r = free_requests_.back();
  free_requests_.pop_back();
  Active& active = requests_[r];
  active = {.request = request, .broken = request.bytes, .used = true};
  next_deadline_ = std::min(next_deadline_, request.deadline);
  ++counters_.requests;
  if (active.total() == 0) {
    settled_.push_back(r);
    return true;
  }
  Queue& queue = queue_of(active);
  active.queued = true;
  active.previous = queue.last;
  (queue.last == kNone ? queue.first : requests_[queue.last].next) = r;
  queue.last = r;
  return true;
}

bool Ring::hand_in(const RingRequest& request) {
  {
    const std::lock_guard guard(handed_in_lock_);
    if (handed_in_.size() == settings_.hand_in_max) return false;
    handed_in_.push_back(request);
  }
  set_event(kernel_->ready_fd());
  return true;
}

std::int32_t Ring::range_of(const std::byte* data, std::uint64_t& room) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), data,
                                      [](const std::byte* at, const Range& range) { return at < range.begin; });
  if (after == ranges_.begin() || std::prev(after)->end <= data) return -1;
  room = static_cast<std::uint64_t>(std::prev(after)->end - data);
  return static_cast<std::int32_t>(std::prev(after) - ranges_.begin());
}

bool Ring::begin_piece(Queue& queue) {
  if (queue.first == kNone) return false;
  const std::uint32_t r = queue.first;
  Active& active = requests_[r];
  const std::uint32_t p = free_pieces_.back();
  free_pieces_.pop_back();
  pieces_[p] = {.request = r,
                .bytes = static_cast<std::uint32_t>(
                    std::min<std::uint64_t>(settings_.piece_bytes, active.total() - active.begun)),
                .at = active.begun};
  active.begun += pieces_[p].bytes;
  ++active.pieces;
  ++queue.under_way;
  ++counters_.pieces;
  if (active.begun == active.total()) unlink(r);
  issue(p);
  return true;
}

void Ring::unlink(std::uint32_t r) {
  Active& active = requests_[r];
  if (!active.queued) return;
  Queue& queue = queue_of(active);
  (active.previous == kNone ? queue.first : requests_[active.previous].next) = active.next;
  (active.next == kNone ? queue.last : requests_[active.next].previous) = active.previous;
  active.previous = active.next = kNone;
  active.queued = false;
}

/// Pushes the piece as it stands; it may become shorter where a registered range ends, and goes on there.
void Ring::issue(std::uint32_t p) {
  Piece& piece = pieces_[p];
  const Active& active = requests_[piece.request];
  const RingRequest& request = active.request;
  KernelRequest ask{.user = p, .file = request.file};
  if (active.sync()) {
    ask.kind = KernelRequest::Kind::sync;
  } else {
    ask.kind = request.kind == RingRequest::Kind::read ? KernelRequest::Kind::read : KernelRequest::Kind::write;
    ask.data = request.data + piece.at;
    ask.offset = request.offset + piece.at;
    ask.bytes = piece.bytes;
    std::uint64_t room = 0;
    if (fixed_) ask.memory = range_of(ask.data, room);
    if (ask.memory >= 0) ask.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(ask.bytes, room));
  }
  piece.memory = ask.memory;
  piece.direct = files_[static_cast<std::size_t>(request.file)].direct;
  if (!kernel_->push(ask)) {
    flush();
    if (!kernel_->push(ask)) {
      waiting_.push_back(p);
      return;
    }
  }
  if (ask.memory >= 0) ++counters_.fixed_pieces;
}

void Ring::flush() {
  const int error = kernel_->submit();
  // EAGAIN, EBUSY, EINTR: all stays pushed, and goes with the next poll.
  KVLIFT_ASSERT(error == 0 || io_cause(-error).answer == IoAnswer::retry);
}

void Ring::pump() {
  if (!waiting_.empty()) {
    again_.swap(waiting_);
    for (const std::uint32_t p : again_) issue(p);
    again_.clear();
  }
  while (!free_pieces_.empty()) {
    if (begin_piece(demand_)) continue;
    if (background_.under_way >= settings_.background_depth || !begin_piece(background_)) break;
  }
  flush();
}

void Ring::break_at(Active& active, std::uint64_t at, std::int32_t cause) {
  if (at >= active.broken && active.cause != 0) return;
  active.broken = std::min(active.broken, at);
  active.cause = cause;
}

bool Ring::step_down(const Piece& piece, int error) {
  File& file = files_[static_cast<std::size_t>(requests_[piece.request].request.file)];
  if (piece.memory >= 0) {
    // Another piece may have taken the step since this one was issued.
    if (!fixed_) return true;
    if (settings_.strict) return false;
    fixed_ = false;
    ++counters_.steps_unregistered;
    if (on_step_down) on_step_down(std::string("ring: registered buffers are refused: ") + std::strerror(error));
    return true;
  }
  if (!piece.direct || settings_.strict) return false;
  if (!file.direct) return true;
  const int flags = fcntl(file.fd, F_GETFL);
  if (flags >= 0 && fcntl(file.fd, F_SETFL, flags & ~O_DIRECT) != 0) return false;
  file.direct = false;
  ++counters_.steps_buffered;
  if (on_step_down)
    on_step_down(std::string("ring: direct I/O is refused, a file is buffered now: ") + std::strerror(error));
  return true;
}

bool Ring::retry(std::uint32_t p, int error) {
  Piece& piece = pieces_[p];
  const Active& active = requests_[piece.request];
  if (active.stopped) return false;
  switch (io_cause(error).answer) {
    case IoAnswer::retry:
      if (++piece.retries > kRetriesMax) return false;
      break;
    case IoAnswer::step_down:
      if (!step_down(piece, error)) return false;
      break;
    case IoAnswer::no_room:
    case IoAnswer::cancelled:
    case IoAnswer::failed:
      return false;
  }
  ++counters_.retries;
  waiting_.push_back(p);
  return true;
}

void Ring::on_result(const KernelResult& result, std::vector<RingDone>& done) {
  if (result.user == kCancellation) return;
  const auto p = static_cast<std::uint32_t>(result.user);
  Piece& piece = pieces_[p];
  KVLIFT_ASSERT(p < pieces_.size() && piece.request != kNone);
  const std::uint32_t r = piece.request;
  Active& active = requests_[r];
  if (result.result < 0) {
    if (retry(p, -result.result)) return;
    break_at(active, piece.at, -result.result);
  } else if (!active.sync()) {
    const auto got = std::min(static_cast<std::uint32_t>(result.result), piece.bytes);
    if (got == 0) {
      break_at(active, piece.at, active.request.kind == RingRequest::Kind::read ? ENODATA : EIO);
    } else if (got < piece.bytes) {
      // Direct I/O goes on at a boundary: what lies beyond the last one is fetched again.
      const std::uint32_t whole = piece.direct ? got & ~static_cast<std::uint32_t>(kAlignment - 1) : got;
      // An odd end under direct I/O is the file's end: asking again gives the same.
      const bool ends = whole < got && active.request.kind == RingRequest::Kind::read;
      ++counters_.short_pieces;
      if (ends || whole == 0) {
        break_at(active, piece.at + got, active.request.kind == RingRequest::Kind::read ? ENODATA : EIO);
      } else if (!active.stopped && piece.at + whole < active.broken) {
        piece.at += whole;
        piece.bytes -= whole;
        piece.retries = 0;
        waiting_.push_back(p);
        return;
      } else {
        break_at(active, piece.at + whole, ECANCELED);
      }
    }
  }
  if (active.cause != 0) unlink(r);
  piece.request = kNone;
  free_pieces_.push_back(p);
  --queue_of(active).under_way;
  --active.pieces;
  settle(r, done);
}

void Ring::answer(Active& active, bool held, std::vector<RingDone>& done) const {
  const bool writes = active.request.kind != RingRequest::Kind::read;
  const Error failed = writes ? Error::FILE_WRITE_FAIL : Error::FILE_READ_FAIL;
  done.push_back({.token = active.request.token,
                  .bytes = active.cause == 0 ? active.request.bytes : std::min(active.broken, active.request.bytes),
                  .error = active.cause == 0 ? Error::OK : failed,
                  .cause = active.cause,
                  .held = held});
  active.answered = true;
  ++counters_.answers;
}

/// Answers a request that has nothing under way and nothing left to begin, and frees its place.
void Ring::settle(std::uint32_t r, std::vector<RingDone>& done) {
  Active& active = requests_[r];
  if (!active.used || active.queued || active.pieces > 0) return;
  if (active.answered) {
    done.push_back({.token = active.request.token, .released = true});
  } else {
    answer(active, false, done);
  }
  active.used = false;
  free_requests_.push_back(r);
}

void Ring::stop(std::uint32_t r) {
  Active& active = requests_[r];
  if (active.stopped) return;
  active.stopped = true;
  if (active.queued) {
    break_at(active, active.begun, ECANCELED);
    unlink(r);
    if (active.pieces == 0) settled_.push_back(r);
  }
  for (std::uint32_t p = 0; p < pieces_.size(); ++p) {
    if (pieces_[p].request != r) continue;
    const KernelRequest ask{.user = kCancellation, .kind = KernelRequest::Kind::cancel, .offset = p};
    if (!kernel_->push(ask)) {
      flush();
      if (!kernel_->push(ask)) break;  // it ends by itself
    }
  }
}

void Ring::cancel(std::uint64_t token) {
  for (std::uint32_t r = 0; r < requests_.size(); ++r) {
    if (!requests_[r].used || requests_[r].request.token != token) continue;
    ++counters_.cancelled;
    stop(r);
  }
}

void Ring::expire(Time now, std::vector<RingDone>& done) {
  if (now < next_deadline_) return;
  next_deadline_ = kNever;
  for (std::uint32_t r = 0; r < requests_.size(); ++r) {
    Active& active = requests_[r];
    if (!active.used || active.answered) continue;
    if (active.request.deadline > now) {
      next_deadline_ = std::min(next_deadline_, active.request.deadline);
      continue;
    }
    ++counters_.expired;
    const bool held = active.pieces > 0;
    // What has arrived without a gap is not known while pieces are out.
    active.broken = 0;
    active.cause = ETIMEDOUT;
    stop(r);
    if (held) answer(active, true, done);
  }
}

void Ring::poll(Time now, std::vector<RingDone>& done) {
  {
    const std::lock_guard guard(handed_in_lock_);
    taken_.swap(handed_in_);
  }
  std::size_t placed = 0;
  while (placed < taken_.size() && start(taken_[placed])) ++placed;
  if (placed < taken_.size()) {
    const std::lock_guard guard(handed_in_lock_);
    handed_in_.insert(handed_in_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(placed), taken_.end());
  }
  taken_.clear();
  for (;;) {
    const std::size_t n = kernel_->reap(results_);
    for (std::size_t i = 0; i < n; ++i) on_result(results_[i], done);
    expire(now, done);
    pump();
    while (!settled_.empty()) {
      const std::uint32_t r = settled_.back();
      settled_.pop_back();
      settle(r, done);
    }
    if (n < results_.size()) return;
  }
}

void Ring::drain(Time now, std::vector<RingDone>& done) {
  while (under_way() > 0) {
    const std::size_t before = under_way();
    poll(now, done);
    kernel_->quiet();
    poll(now, done);
    if (under_way() == 0 || under_way() < before) continue;
    pollfd wait{.fd = kernel_->ready_fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, 10);  // results that came before quiet() are reaped by the next round
  }
}

std::string Ring::describe() const {
  std::string text = kernel_->describe();
  std::size_t direct = 0, files = 0;
  for (const File& file : files_) files += file.used ? 1 : 0, direct += file.used && file.direct ? 1 : 0;
  text += fixed_ ? ", registered buffers" : ", buffers not registered";
  text += ", " + std::to_string(direct) + " of " + std::to_string(files) + " files direct";
  text += ", depth " + std::to_string(settings_.depth) + ", pieces of " + std::to_string(settings_.piece_bytes) + " B";
  const std::uint64_t steps = counters_.steps_unregistered + counters_.steps_buffered;
  if (steps > 0) text += ", stepped down " + std::to_string(steps) + " times";
  return text;
}

}  // namespace kvlift::real
