// A file descriptor that is closed with its owner, and what is done to an eventfd.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace kvlift::real {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) close(), fd_ = std::exchange(other.fd_, -1);
    return *this;
  }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

/// Makes an eventfd readable. Never blocks: its count cannot be full.
inline void set_event(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

/// Makes an eventfd that was opened without blocking unreadable again.
inline void clear_event(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd, &count, sizeof count);
}

}  // namespace kvlift::real
