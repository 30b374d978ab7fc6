// A folder on SSD that belongs to one process: a locked owner file, and segment files that only the owner can read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "real/descriptor.hpp"

namespace kvlift::real {

class SsdFolder {
 public:
  /// Makes the folder (0700) unless it is there. Throws RealError when it cannot be used, or somebody else owns it.
  explicit SsdFolder(std::string path);

  /// Numbers of the segments that are there, ascending.
  std::vector<std::uint64_t> segments() const;
  /// A new file of `bytes` that are reserved on the device, 0600, for direct I/O where the file system has it; -errno
  /// when there is no room, and then no file either.
  int create(std::uint64_t number, std::uint64_t bytes, bool& direct);
  /// -errno when it cannot be opened.
  int open(std::uint64_t number, bool& direct);
  /// True when it is gone.
  bool remove(std::uint64_t number);
  const std::string& path() const { return path_; }

 private:
  int open_file(const std::string& name, int flags, bool& direct) const;

  std::string path_;
  Descriptor folder_, owner_;
};

}  // namespace kvlift::real
