// What the ring asks of the operating system: push a few operations, submit them, reap their results.
//
// Makers: uring_kernel.hpp (io_uring), pread_kernel.hpp (one blocking call after another), and the tests' fake.
// A kernel belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "real/link.hpp"

namespace kvlift::real {

struct KernelRequest {
  enum class Kind : std::uint8_t {
    read,
    write,
    sync,    ///< the file's data, and what of its metadata is needed to read them again
    cancel,  ///< the request whose `user` is `offset`; its own result says nothing
  };
  std::uint64_t user = 0;  ///< comes back with the result
  Kind kind = Kind::read;
  std::int32_t file = -1;    ///< as add_file() named it
  std::int32_t memory = -1;  ///< registered range that `data` lies in; -1: none
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;
};

struct KernelResult {
  std::uint64_t user = 0;
  std::int32_t result = 0;  ///< bytes, or -errno
};

class Kernel {
 public:
  Kernel() = default;
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// False when no more can be pushed before a submit().
  virtual bool push(const KernelRequest& request) = 0;
  /// Hands over what was pushed; 0, or -errno when nothing was taken (all stays pushed).
  virtual int submit() = 0;
  /// Results that have come in, as many as fit; never waits.
  virtual std::size_t reap(std::span<KernelResult> results) = 0;
  /// Index of the file from now on, or -errno.
  virtual int add_file(int fd) = 0;
  virtual void remove_file(int file) = 0;
  /// Registers ranges 0, 1, ... for fixed operations; 0 or -errno. Once.
  virtual int register_memory(std::span<const Memory> ranges) = 0;
  /// The longest range that may be registered, in bytes; 0: it registers none.
  virtual std::uint64_t range_bytes_max() const = 0;
  /// Readable, for poll(2), once results have come in since the last quiet(); belongs to the kernel.
  virtual int ready_fd() const = 0;
  /// Empties ready_fd(). Who is going to wait for it calls this, then reap() once more.
  virtual void quiet() = 0;
  /// System calls made for submitting so far.
  virtual std::uint64_t submit_calls() const = 0;
  /// For result files: which engine, with what flags granted.
  virtual std::string describe() const = 0;
};

}  // namespace kvlift::real
