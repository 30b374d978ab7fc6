// One object on SSD: a header page, then its bytes, filled up to whole pages.
//
//   4 KiB header | payload | up to 4 KiB of filling        all at a multiple of 4 KiB, as direct I/O wants it
//
// The header names its own place, so that a page left over from another file or another place is not taken for one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/ids.hpp"

namespace kvlift::real {

inline constexpr std::uint64_t kPage = 4096;

struct RecordHeader {
  ObjectKey key;
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;  ///< of payload
  std::uint32_t payload_crc = 0;
  std::uint64_t segment = 0;  ///< number of the segment it stands in
  std::uint64_t offset = 0;   ///< in bytes from the segment's start
  bool forgotten = false;     ///< the object is not kept any more; its length still leads to the next record
  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

/// Bytes of the pages that so many bytes take.
constexpr std::uint64_t paged(std::uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }
/// Bytes on SSD of a record with so many bytes of payload.
constexpr std::uint64_t record_bytes(std::uint64_t payload) { return kPage + paged(payload); }

/// Fills the whole page.
void encode(const RecordHeader& header, std::byte* page);
/// Empty when the page is no header, is of another format, or does not match its checksum.
std::optional<RecordHeader> decode(const std::byte* page);

}  // namespace kvlift::real
