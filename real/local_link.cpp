#include "real/local_link.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "real/error.hpp"

namespace kvlift::real {
namespace {
constexpr std::size_t kPostedMax = 4096;
}

LocalLink::LocalLink(const Memory& local, const Memory& remote)
    : local_(local), remote_(remote), ready_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!ready_.open()) throw RealError("eventfd is refused", errno);
  thread_ = std::thread([this] { work(); });
}

LocalLink::~LocalLink() {
  {
    const std::lock_guard guard(lock_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

bool LocalLink::post(const Transfer& transfer) {
  const bool valid = inside(local_, transfer.local, transfer.bytes) && inside(remote_, transfer.remote, transfer.bytes);
  const std::lock_guard guard(lock_);
  if (queue_.size() + done_.size() >= kPostedMax) return false;
  if (valid) {
    queue_.push_back(transfer);
    posted_.notify_one();
  } else {
    done_.push_back({.token = transfer.token, .error = Error::INVALID_PARAMS, .cause = EINVAL});
    set_event(ready_.get());
  }
  return true;
}

void LocalLink::poll(std::vector<TransferDone>& done) {
  const std::lock_guard guard(lock_);
  clear_event(ready_.get());
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void LocalLink::work() {
  std::unique_lock guard(lock_);
  for (;;) {
    posted_.wait(guard, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const Transfer transfer = queue_.front();
    guard.unlock();
    std::byte* here = local_.data + transfer.local;
    std::byte* there = remote_.data + transfer.remote;
    const bool reads = transfer.direction == Transfer::Direction::read;
    std::memmove(reads ? here : there, reads ? there : here, transfer.bytes);
    guard.lock();
    queue_.pop_front();
    done_.push_back({.token = transfer.token});
    set_event(ready_.get());
  }
}

}  // namespace kvlift::real
