// CRC32C (Castagnoli, RFC 3720 appendix B.4), by ISA-L, which uses the processor's instructions for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvlift::real {

/// `before`: the checksum of the bytes that come before these.
std::uint32_t crc32c(const std::byte* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace kvlift::real
