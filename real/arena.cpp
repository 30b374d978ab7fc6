#include "real/arena.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "real/error.hpp"

namespace kvlift::real {
namespace {
constexpr std::size_t kHugePage = 2UL << 20;
}

Arena::Arena(std::size_t bytes) : bytes_((bytes + kHugePage - 1) & ~(kHugePage - 1)) {
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kKind | MAP_HUGETLB | MAP_POPULATE, -1, 0);
  if (at != MAP_FAILED) {
    pages_ = "reserved 2 MiB pages";
  } else {
    at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kKind, -1, 0);
    if (at == MAP_FAILED) throw RealError(std::to_string(bytes_ >> 20) + " MiB of memory cannot be mapped", errno);
    if (madvise(at, bytes_, MADV_HUGEPAGE) == 0) pages_ = "2 MiB pages where the kernel has them";
    if (madvise(at, bytes_, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
      const int error = errno;
      munmap(at, bytes_);
      throw RealError(std::to_string(bytes_ >> 20) + " MiB of memory cannot be had", error);
    }
  }
  data_ = static_cast<std::byte*>(at);
}

Arena::~Arena() { munmap(data_, bytes_); }

std::string Arena::describe() const { return std::to_string(bytes_ >> 20) + " MiB, " + pages_; }

}  // namespace kvlift::real
