#include "real/uring_kernel.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "real/error.hpp"

namespace kvlift::real {
namespace {

/// liburing 2.3 declares functions for enabling and restricting a ring that its shared library does not export.
int register_with(const io_uring& ring, unsigned what, void* argument, unsigned count) {
  return syscall(SYS_io_uring_register, ring.ring_fd, what, argument, count) < 0 ? -errno : 0;
}

}  // namespace

void UringKernel::open(unsigned depth) {
  // Plainer and plainer, for older kernels; each was granted or refused as a whole.
  constexpr unsigned kBase = IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED;
  int error = 0;
  for (const unsigned more : {static_cast<unsigned>(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN),
                              static_cast<unsigned>(IORING_SETUP_COOP_TASKRUN), 0U}) {
    io_uring_params params{};
    params.flags = kBase | more;
    params.cq_entries = depth * 4;  // operations, and the cancellations of each
    error = io_uring_queue_init_params(depth * 2, &ring_, &params);
    flags_ = params.flags;
    if (error == 0) return;
    if (error != -EINVAL) break;
  }
  throw RealError("io_uring is refused", -error);
}

UringKernel::UringKernel(unsigned depth, unsigned files_max) {
  open(depth);
  ready_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  int error = ready_.open() ? io_uring_register_eventfd(&ring_, ready_.get()) : -errno;
  if (error == 0) error = io_uring_register_files_sparse(&ring_, files_max);
  if (error == 0) {
    restrict();
    error = register_with(ring_, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  }
  if (error < 0) {
    io_uring_queue_exit(&ring_);
    throw RealError("io_uring cannot be set up", -error);
  }
  for (unsigned file = files_max; file > 0; --file) free_files_.push_back(static_cast<int>(file) - 1);
}

UringKernel::~UringKernel() { io_uring_queue_exit(&ring_); }

void UringKernel::restrict() {
  std::array<io_uring_restriction, 11> list{};
  std::size_t n = 0;
  for (const int op : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED, IORING_OP_FSYNC,
                       IORING_OP_ASYNC_CANCEL, IORING_OP_NOP}) {
    list[n].opcode = IORING_RESTRICTION_SQE_OP;
    list[n++].sqe_op = static_cast<std::uint8_t>(op);
  }
  for (const int op : {IORING_REGISTER_BUFFERS, IORING_UNREGISTER_BUFFERS, IORING_REGISTER_FILES_UPDATE}) {
    list[n].opcode = IORING_RESTRICTION_REGISTER_OP;
    list[n++].register_op = static_cast<std::uint8_t>(op);
  }
  list[n].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
  list[n++].sqe_flags = IOSQE_FIXED_FILE;
  restricted_ = register_with(ring_, IORING_REGISTER_RESTRICTIONS, list.data(), static_cast<unsigned>(n)) == 0;
}

bool UringKernel::push(const KernelRequest& request) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) return false;
  switch (request.kind) {
    case KernelRequest::Kind::read:
      if (request.memory >= 0) {
        io_uring_prep_read_fixed(sqe, request.file, request.data, request.bytes, request.offset, request.memory);
      } else {
        io_uring_prep_read(sqe, request.file, request.data, request.bytes, request.offset);
      }
      break;
    case KernelRequest::Kind::write:
      if (request.memory >= 0) {
        io_uring_prep_write_fixed(sqe, request.file, request.data, request.bytes, request.offset, request.memory);
      } else {
        io_uring_prep_write(sqe, request.file, request.data, request.bytes, request.offset);
      }
      break;
    case KernelRequest::Kind::sync:
      io_uring_prep_fsync(sqe, request.file, IORING_FSYNC_DATASYNC);
      break;
    case KernelRequest::Kind::cancel:
      io_uring_prep_cancel64(sqe, request.offset, 0);
      break;
  }
  if (request.kind != KernelRequest::Kind::cancel) sqe->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(sqe, request.user);
  return true;
}

int UringKernel::submit() {
  if (io_uring_sq_ready(&ring_) == 0) return 0;
  ++submit_calls_;
  const int taken = io_uring_submit(&ring_);
  return std::min(taken, 0);
}

std::size_t UringKernel::reap(std::span<KernelResult> results) {
  std::size_t n = 0;
  unsigned head = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    if (n == results.size()) break;
    results[n++] = {.user = cqe->user_data, .result = cqe->res};
  }
  io_uring_cq_advance(&ring_, static_cast<unsigned>(n));
  return n;
}

int UringKernel::add_file(int fd) {
  if (free_files_.empty()) return -ENFILE;
  const int file = free_files_.back();
  const int done = io_uring_register_files_update(&ring_, static_cast<unsigned>(file), &fd, 1);
  if (done < 0) return done;
  free_files_.pop_back();
  return file;
}

void UringKernel::remove_file(int file) {
  const int none = -1;
  if (io_uring_register_files_update(&ring_, static_cast<unsigned>(file), &none, 1) == 1) free_files_.push_back(file);
}

int UringKernel::register_memory(std::span<const Memory> ranges) {
  std::vector<iovec> list;
  list.reserve(ranges.size());
  for (const Memory& range : ranges) list.push_back({range.data, range.bytes});
  return io_uring_register_buffers(&ring_, list.data(), static_cast<unsigned>(list.size()));
}

std::string UringKernel::describe() const {
  std::string text = "io_uring";
  if ((flags_ & IORING_SETUP_SINGLE_ISSUER) != 0) text += " single_issuer";
  if ((flags_ & IORING_SETUP_COOP_TASKRUN) != 0) text += " coop_taskrun";
  if (restricted_) text += " restricted";
  return text;
}

}  // namespace kvlift::real
