#include "real/record.hpp"

#include <cstring>
#include <type_traits>

#include "real/crc32c.hpp"

namespace kvlift::real {
namespace {

constexpr std::uint64_t kMagic = 0x3154'4649'4c56'4bULL;  // "KVLIFT1", lowest byte first

/// As it stands on SSD, little-endian. A change of meaning changes the magic.
struct Layout {
  std::uint64_t magic, key_high, key_low, version, bytes, segment, offset;
  std::uint32_t tenant, payload_crc, forgotten, header_crc;
};
static_assert(std::is_trivially_copyable_v<Layout> && sizeof(Layout) == 72);

std::uint32_t checksum(Layout layout) {
  layout.header_crc = 0;
  std::byte raw[sizeof layout];
  std::memcpy(raw, &layout, sizeof layout);
  return crc32c(raw, sizeof raw);
}

}  // namespace

void encode(const RecordHeader& header, std::byte* page) {
  Layout layout{.magic = kMagic,
                .key_high = header.key.key.high,
                .key_low = header.key.key.low,
                .version = header.version,
                .bytes = header.bytes,
                .segment = header.segment,
                .offset = header.offset,
                .tenant = static_cast<std::uint32_t>(header.key.tenant),
                .payload_crc = header.payload_crc,
                .forgotten = header.forgotten ? 1U : 0U,
                .header_crc = 0};
  layout.header_crc = checksum(layout);
  std::memset(page, 0, kPage);
  std::memcpy(page, &layout, sizeof layout);
}

std::optional<RecordHeader> decode(const std::byte* page) {
  Layout layout;
  std::memcpy(&layout, page, sizeof layout);
  if (layout.magic != kMagic || layout.header_crc != checksum(layout)) return std::nullopt;
  return RecordHeader{.key = {{layout.key_high, layout.key_low}, static_cast<TenantId>(layout.tenant)},
                      .version = layout.version,
                      .bytes = layout.bytes,
                      .payload_crc = layout.payload_crc,
                      .segment = layout.segment,
                      .offset = layout.offset,
                      .forgotten = layout.forgotten != 0};
}

}  // namespace kvlift::real
