#include "real/io_error.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace kvlift::real {
namespace {

// io_uring_enter(2), pread(2), pwrite(2) and the errors that block devices give (blk_status_to_errno of Linux).
constexpr IoCause kCauses[] = {
    {EINTR, IoAnswer::retry, "interrupted by a signal"},
    {EAGAIN, IoAnswer::retry, "the kernel is short of requests for a moment"},
    {EBUSY, IoAnswer::retry, "completions must be taken first"},
    {EINVAL, IoAnswer::step_down, "the file system refuses direct I/O of this kind, or the kernel this operation"},
    {EOPNOTSUPP, IoAnswer::step_down, "the file does not support the operation"},
    {ENOSYS, IoAnswer::step_down, "the kernel does not know the operation"},
    {EACCES, IoAnswer::step_down, "the ring is restricted to other operations"},
    {EFAULT, IoAnswer::step_down, "the registered buffer does not cover the memory"},
    {ENOSPC, IoAnswer::no_room, "the file system is full"},
    {EDQUOT, IoAnswer::no_room, "the quota of the file system is used up"},
    {EFBIG, IoAnswer::no_room, "the file may not grow further"},
    {ECANCELED, IoAnswer::cancelled, "cancelled"},
    {ETIMEDOUT, IoAnswer::failed, "the device did not answer in time"},
    {EIO, IoAnswer::failed, "the device reports an error"},
    {ENODATA, IoAnswer::failed, "the medium cannot be read there"},
    {EREMOTEIO, IoAnswer::failed, "the device is broken"},
    {ENODEV, IoAnswer::failed, "the device is gone"},
    {ENXIO, IoAnswer::failed, "the device is gone"},
    {EBADF, IoAnswer::failed, "the file is closed"},
};

}  // namespace

IoCause io_cause(int error) {
  const auto* found =
      std::find_if(std::begin(kCauses), std::end(kCauses), [&](const IoCause& c) { return c.error == error; });
  return found != std::end(kCauses) ? *found : IoCause{error, IoAnswer::failed, "not in the list"};
}

}  // namespace kvlift::real
