// A link to the same process: copies, made by a thread of its own in the order they were posted.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "real/descriptor.hpp"
#include "real/link.hpp"

namespace kvlift::real {

class LocalLink : public Link {
 public:
  LocalLink(const Memory& local, const Memory& remote);
  /// What was posted and not begun is dropped.
  ~LocalLink() override;

  bool post(const Transfer& transfer) override;
  void poll(std::vector<TransferDone>& done) override;
  int ready_fd() const override { return ready_.get(); }
  std::string describe() const override { return "local: copies by one thread"; }

 private:
  void work();

  Memory local_, remote_;
  Descriptor ready_;
  std::mutex lock_;
  std::condition_variable posted_;
  std::deque<Transfer> queue_;
  std::vector<TransferDone> done_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the rest
};

/// True when `bytes` from `offset` on lie inside the memory.
constexpr bool inside(const Memory& memory, std::uint64_t offset, std::uint64_t bytes) {
  return bytes > 0 && offset <= memory.bytes && bytes <= memory.bytes - offset;
}

}  // namespace kvlift::real
