#include "real/payload.hpp"

#include <algorithm>
#include <cstring>

#include "real/record.hpp"

namespace kvlift::real {
namespace {

std::uint64_t stamp_of(const ObjectKey& key, std::uint64_t at) { return mix64(hash_of(key) + at); }

std::size_t stamp_bytes(std::uint64_t at, std::uint64_t bytes) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(sizeof(std::uint64_t), bytes - at));
}

bool stamped(const ObjectKey& key, const std::byte* data, std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t stamp = stamp_of(key, at);
  return std::memcmp(data + at, &stamp, stamp_bytes(at, bytes)) == 0;
}

}  // namespace

void mark(const ObjectKey& key, std::byte* data, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kPage) {
    const std::uint64_t stamp = stamp_of(key, at);
    std::memcpy(data + at, &stamp, stamp_bytes(at, bytes));
  }
}

bool marked(const ObjectKey& key, const std::byte* data, std::uint64_t bytes, std::uint64_t every) {
  if (bytes == 0) return true;
  for (std::uint64_t at = 0; at < bytes; at += kPage * every) {
    if (!stamped(key, data, at, bytes)) return false;
  }
  return stamped(key, data, (bytes - 1) / kPage * kPage, bytes);
}

}  // namespace kvlift::real
