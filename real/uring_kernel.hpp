// The kernel of the ring on io_uring, through liburing.
//
// Opened disabled, restricted to the operations in use, then enabled. Files and memory are registered. Completions
// are announced on an eventfd, so that a thread can wait for them together with other things.
#pragma once

#include <liburing.h>

#include <vector>

#include "real/descriptor.hpp"
#include "real/kernel.hpp"

namespace kvlift::real {

class UringKernel : public Kernel {
 public:
  /// `depth` operations under way at most, `files_max` files. Throws RealError with the errno when io_uring is refused.
  UringKernel(unsigned depth, unsigned files_max);
  ~UringKernel() override;

  bool push(const KernelRequest& request) override;
  int submit() override;
  std::size_t reap(std::span<KernelResult> results) override;
  int add_file(int fd) override;
  void remove_file(int file) override;
  int register_memory(std::span<const Memory> ranges) override;
  std::uint64_t range_bytes_max() const override { return 1ULL << 30; }  // io_uring_register(2)
  int ready_fd() const override { return ready_.get(); }
  void quiet() override { clear_event(ready_.get()); }
  std::uint64_t submit_calls() const override { return submit_calls_; }
  std::string describe() const override;

 private:
  void open(unsigned depth);
  void restrict();

  io_uring ring_{};
  Descriptor ready_;
  unsigned flags_ = 0;
  bool restricted_ = false;
  std::vector<int> free_files_;
  std::uint64_t submit_calls_ = 0;
};

}  // namespace kvlift::real
