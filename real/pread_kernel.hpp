// The kernel of the ring where io_uring is refused: each operation is one blocking call, made by submit().
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "real/descriptor.hpp"
#include "real/kernel.hpp"

namespace kvlift::real {

class PreadKernel : public Kernel {
 public:
  explicit PreadKernel(unsigned depth);

  bool push(const KernelRequest& request) override;
  int submit() override;
  std::size_t reap(std::span<KernelResult> results) override;
  int add_file(int fd) override;
  void remove_file(int file) override;
  int register_memory(std::span<const Memory> /*ranges*/) override { return 0; }
  std::uint64_t range_bytes_max() const override { return 0; }
  int ready_fd() const override { return ready_.get(); }
  void quiet() override { clear_event(ready_.get()); }
  std::uint64_t submit_calls() const override { return calls_; }
  std::string describe() const override { return "pread"; }

 private:
  int perform(const KernelRequest& request);

  std::size_t depth_;
  Descriptor ready_;
  std::vector<KernelRequest> pushed_;
  std::deque<KernelResult> results_;
  std::vector<int> files_;  ///< by index; -1: free
  std::uint64_t calls_ = 0;
};

}  // namespace kvlift::real
