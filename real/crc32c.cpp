#include "real/crc32c.hpp"

#include <isa-l.h>

#include <algorithm>

namespace kvlift::real {

std::uint32_t crc32c(const std::byte* data, std::size_t bytes, std::uint32_t before) {
  constexpr std::size_t kStep = 1UL << 30;  // ISA-L counts in int
  std::uint32_t crc = ~before;
  while (bytes > 0) {
    const std::size_t now = std::min(bytes, kStep);
    // The function reads only; its parameter lacks the const.
    auto* at = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data));
    crc = crc32_iscsi(at, static_cast<int>(now), crc);
    data += now;
    bytes -= now;
  }
  return ~crc;
}

}  // namespace kvlift::real
