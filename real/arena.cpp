#include "real/arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "real/error.hpp"

namespace kvlift::real {
namespace {
constexpr std::size_t kHugePage = 2UL << 20;

/// What can be had without driving others out; of Linux, /proc/meminfo.
std::uint64_t available_kib() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib;
    std::getline(file, unit);
  }
  return ~0ULL;
}

}  // namespace

Arena::Arena(std::size_t bytes) : bytes_((bytes + kHugePage - 1) & ~(kHugePage - 1)) {
  if (const std::uint64_t kib = available_kib(); bytes_ >> 10 > kib)
    throw RealError(std::to_string(bytes_ >> 20) + " MiB of memory are needed, " + std::to_string(kib >> 10) +
                    " MiB are available");
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
