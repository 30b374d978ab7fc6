#include "real/ssd_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "real/error.hpp"

namespace kvlift::real {
namespace {

constexpr std::string_view kPrefix = "segment-";
constexpr mode_t kOwnerOnly = 0600;

std::string name_of(std::uint64_t number) { return std::string(kPrefix) + std::to_string(number); }

}  // namespace

SsdFolder::SsdFolder(std::string path) : path_(std::move(path)) {
  if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) throw RealError("folder " + path_ + " cannot be made", errno);
  folder_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.open()) throw RealError("folder " + path_ + " cannot be opened", errno);
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  owner_ = Descriptor(openat(folder_.get(), "owner", kFlags, kOwnerOnly));
  if (!owner_.open()) throw RealError("folder " + path_ + " cannot be written", errno);
  if (flock(owner_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw RealError("folder " + path_ + " cannot be locked", errno);
    std::array<char, 32> text{};
    const ssize_t got = pread(owner_.get(), text.data(), text.size(), 0);
    const std::string_view who(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    throw RealError("folder " + path_ + " is in use by process " + std::string(who.substr(0, who.find('\n'))));
  }
  const std::string record = std::to_string(getpid()) + "\n";
  if (ftruncate(owner_.get(), 0) != 0 ||
      pwrite(owner_.get(), record.data(), record.size(), 0) != static_cast<ssize_t>(record.size()))
    throw RealError("folder " + path_ + " cannot be written", errno);
}

std::vector<std::uint64_t> SsdFolder::segments() const {
  std::vector<std::uint64_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(path_.c_str()), closedir);
  if (!list) throw RealError("folder " + path_ + " cannot be listed", errno);
  while (const dirent* entry = readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    std::uint64_t number = 0;
    const char* end = name.data() + name.size();
    const auto [stop, wrong] = std::from_chars(name.data() + kPrefix.size(), end, number);
    if (wrong == std::errc{} && stop == end && name_of(number) == name) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

int SsdFolder::open_file(const std::string& name, int flags, bool& direct) const {
  flags |= O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  direct = true;
  int fd = openat(folder_.get(), name.c_str(), flags | O_DIRECT, kOwnerOnly);
  if (fd < 0 && errno == EINVAL) {
    direct = false;
    fd = openat(folder_.get(), name.c_str(), flags & ~O_EXCL, kOwnerOnly);  // the refused try may have made it
  }
  return fd < 0 ? -errno : fd;
}

int SsdFolder::create(std::uint64_t number, std::uint64_t bytes, bool& direct) {
  const int fd = open_file(name_of(number), O_CREAT | O_EXCL, direct);
  if (fd < 0) return fd;
  int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error == 0 && fsync(folder_.get()) != 0) error = errno;
  if (error == 0) return fd;
  ::close(fd);
  remove(number);
  return -error;
}

int SsdFolder::open(std::uint64_t number, bool& direct) { return open_file(name_of(number), 0, direct); }

bool SsdFolder::remove(std::uint64_t number) {
  return unlinkat(folder_.get(), name_of(number).c_str(), 0) == 0 || errno == ENOENT;
}

}  // namespace kvlift::real
