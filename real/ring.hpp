// Reads and writes of files, asynchronously: many requests, each cut into pieces, a window of pieces under way.
//
//   request --cut into pieces--> demand queue ----+--> window of `depth` pieces --> kernel --> device
//                                background queue-+    (background: at most `background_depth` of them)
//
// Guarantees:
// - Each accepted request is answered once and only once, with what really arrived.
// - A short piece goes on where it stopped; a piece that gives nothing is the end of the file.
// - A request may carry a deadline. When it passes, the caller is answered (cause ETIMEDOUT) and its buffer is *held*:
//   the device may still write into it until a second answer says `released`.
// - Nothing is allocated after construction while files stay attached.
// - What the kernel or the file system refuses is asked for in a plainer way:
//       registered buffers + direct  ->  direct  ->  buffered,      io_uring -> pread (open_ring.hpp)
//   Each step down is counted, logged once through `on_step_down`, and told by describe(); `strict` fails instead.
//
// Belongs to one thread. Other threads hand requests in through hand_in(), which is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/time.hpp"
#include "real/kernel.hpp"

namespace kvlift::real {

struct RingSettings {
  std::uint32_t depth = 64;                ///< pieces under way
  std::uint32_t background_depth = 16;     ///< of these, for requests that somebody does not wait for; >= 1
  std::uint32_t requests_max = 4096;       ///< accepted and not over; a full ring refuses
  std::uint32_t piece_bytes = 512U << 10;  ///< a multiple of 4 KiB
  std::uint32_t hand_in_max = 1024;
  bool strict = false;  ///< fail rather than step down
};

struct RingRequest {
  enum class Kind : std::uint8_t { read, write, sync };
  std::uint64_t token = 0;  ///< comes back with the answer
  Kind kind = Kind::read;
  bool background = false;
  std::int32_t file = -1;     ///< as attach() named it
  std::byte* data = nullptr;  ///< must stay until the answer, and while held until `released`
  std::uint64_t bytes = 0;    ///< with direct I/O multiples of 4 KiB, as are data and offset
  std::uint64_t offset = 0;
  Time deadline = kNever;
};

struct RingDone {
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;  ///< from the request's start on, without a gap
  Error error = Error::OK;  ///< OK, FILE_READ_FAIL (also short) or FILE_WRITE_FAIL
  std::int32_t cause = 0;   ///< errno; ENODATA when the file ended; 0 with OK
  bool held = false;        ///< answered before the device was done
  bool released = false;    ///< the second answer after a held one; not an answer to the caller
};

struct RingCounters {
  std::uint64_t requests = 0, answers = 0, pieces = 0, retries = 0, short_pieces = 0, expired = 0, cancelled = 0;
  std::uint64_t fixed_pieces = 0;        ///< went through a registered buffer
  std::uint64_t steps_unregistered = 0;  ///< fixed -> plain
  std::uint64_t steps_buffered = 0;      ///< direct -> buffered, by file
};

class Ring {
 public:
  Ring(std::unique_ptr<Kernel> kernel, const RingSettings& settings);
  /// Waits for what is under way: the device must not write into memory that is given back.
  ~Ring();

  /// Memory that requests will lie in; once, before requests. Without success the ring steps down, or throws RealError
  /// when strict.
  void register_memory(std::span<const Memory> memory);
  /// The descriptor must stay open until detach(); -errno when there is no place for it.
  int attach(int fd, bool direct);
  void detach(int file);

  /// False when the ring is full. `now` stamps nothing but the deadline's watch.
  [[nodiscard]] bool start(const RingRequest& request);
  /// From any thread; false when the queue is full. The answer comes out of poll() as every other.
  [[nodiscard]] bool hand_in(const RingRequest& request);
  /// What has not begun is dropped, the rest is asked to end; the answer says ECANCELED unless it was too late.
  void cancel(std::uint64_t token);
  /// Submits what waits and appends the answers that have come; never waits.
  void poll(Time now, std::vector<RingDone>& done);
  /// Waits until nothing is under way; the answers are appended.
  void drain(Time now, std::vector<RingDone>& done);

  /// Readable, for poll(2), when poll() has something to do. Before waiting: quiet(), then poll() once more.
  int ready_fd() const { return kernel_->ready_fd(); }
  void quiet() { kernel_->quiet(); }
  /// When poll() must be called at the latest, for a deadline.
  Time next_deadline() const { return next_deadline_; }
  std::size_t under_way() const { return settings_.requests_max - free_requests_.size(); }
  const RingCounters& counters() const { return counters_; }
  std::uint64_t submit_calls() const { return kernel_->submit_calls(); }
  std::string describe() const;

  /// Called once per step down with one line; may be empty.
  std::function<void(const std::string&)> on_step_down;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Active {
    RingRequest request;
    std::uint64_t begun = 0;   ///< bytes cut into pieces; of a sync 1
    std::uint64_t broken = 0;  ///< where the first piece that failed or ended begins; `bytes` when none
    std::uint32_t pieces = 0;  ///< under way
    std::uint32_t previous = kNone, next = kNone;  ///< in its queue
    std::int32_t cause = 0;
    bool used = false, queued = false, answered = false, stopped = false;
    bool sync() const { return request.kind == RingRequest::Kind::sync; }
    std::uint64_t total() const { return sync() ? 1 : request.bytes; }
  };
  struct Piece {
    std::uint32_t request = kNone;
    std::uint32_t bytes = 0;  ///< still to come
    std::uint64_t at = 0;     ///< from the request's start
    std::uint32_t retries = 0;
    std::int32_t memory = -1;  ///< the range it was issued with
    bool direct = false;       ///< as it was issued
  };
  struct Queue {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t under_way = 0;  ///< pieces
  };
  struct File {
    int fd = -1;
    bool used = false, direct = false;
  };
  struct Range {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };

  /// Cuts the next piece off the first request of the queue; false when there is none.
  bool begin_piece(Queue& queue);
  /// Takes the request out of its queue: no piece of it will begin any more.
  void unlink(std::uint32_t request);
  void issue(std::uint32_t piece);
  void pump();
  void flush();
  void on_result(const KernelResult& result, std::vector<RingDone>& done);
  /// True when the piece was issued again.
  bool retry(std::uint32_t piece, int error);
  bool step_down(const Piece& piece, int error);
  void break_at(Active& active, std::uint64_t at, std::int32_t cause);
  void settle(std::uint32_t request, std::vector<RingDone>& done);
  void answer(Active& active, bool held, std::vector<RingDone>& done) const;
  void expire(Time now, std::vector<RingDone>& done);
  void stop(std::uint32_t request);
  std::int32_t range_of(const std::byte* data, std::uint64_t& room) const;
  Queue& queue_of(const Active& active) { return active.request.background ? background_ : demand_; }

  std::unique_ptr<Kernel> kernel_;
  RingSettings settings_;
  std::vector<Active> requests_;
  std::vector<std::uint32_t> free_requests_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> free_pieces_;
  std::vector<std::uint32_t> waiting_;  ///< pieces that the kernel's queue had no place for, or to issue again
  std::vector<std::uint32_t> again_;    ///< scratch
  std::vector<std::uint32_t> settled_;  ///< requests to settle that never had a piece
  Queue demand_, background_;
  std::vector<File> files_;
  std::vector<Range> ranges_;  ///< registered, ascending
  bool fixed_ = false;
  Time next_deadline_ = kNever;
  std::vector<KernelResult> results_;
  mutable RingCounters counters_;
  std::mutex handed_in_lock_;
  std::vector<RingRequest> handed_in_;
  std::vector<RingRequest> taken_;
};

}  // namespace kvlift::real
