// Memory that bytes are read into, kept in and sent from: mapped at once, in huge pages where allowed.
#pragma once

#include <string>

#include "real/link.hpp"

namespace kvlift::real {

class Arena {
 public:
  /// `bytes` > 0, rounded up to 2 MiB; zeroed and present in memory. Throws RealError when there is not enough.
  explicit Arena(std::size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Memory memory() const { return {data_, bytes_}; }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::string describe() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  const char* pages_ = "4 KiB pages";
};

}  // namespace kvlift::real
