#include "real/pread_kernel.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "real/error.hpp"

namespace kvlift::real {

PreadKernel::PreadKernel(unsigned depth) : depth_(depth), ready_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!ready_.open()) throw RealError("eventfd is refused", errno);
}

bool PreadKernel::push(const KernelRequest& request) {
  if (pushed_.size() == depth_) return false;
  pushed_.push_back(request);
  return true;
}

int PreadKernel::perform(const KernelRequest& request) {
  if (request.kind == KernelRequest::Kind::cancel) return -ENOENT;  // everything before it is over
  const int fd = files_[static_cast<std::size_t>(request.file)];
  ++calls_;
  ssize_t done = 0;
  switch (request.kind) {
    case KernelRequest::Kind::read:
      done = pread(fd, request.data, request.bytes, static_cast<off_t>(request.offset));
      break;
    case KernelRequest::Kind::write:
      done = pwrite(fd, request.data, request.bytes, static_cast<off_t>(request.offset));
      break;
    case KernelRequest::Kind::sync:
      done = fdatasync(fd);
      break;
    case KernelRequest::Kind::cancel:
      break;
  }
  return done < 0 ? -errno : static_cast<int>(done);
}

int PreadKernel::submit() {
  for (const KernelRequest& request : pushed_) results_.push_back({request.user, perform(request)});
  if (!pushed_.empty()) set_event(ready_.get());
  pushed_.clear();
  return 0;
}

std::size_t PreadKernel::reap(std::span<KernelResult> results) {
  const std::size_t n = std::min(results.size(), results_.size());
  std::copy_n(results_.begin(), n, results.begin());
  results_.erase(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

int PreadKernel::add_file(int fd) {
  const auto free = std::find(files_.begin(), files_.end(), -1);
  if (free != files_.end()) {
    *free = fd;
    return static_cast<int>(free - files_.begin());
  }
  files_.push_back(fd);
  return static_cast<int>(files_.size()) - 1;
}

void PreadKernel::remove_file(int file) { files_[static_cast<std::size_t>(file)] = -1; }

}  // namespace kvlift::real
