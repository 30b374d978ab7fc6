// Names of things: strong integers, and the tenant-scoped key of an object.
//
// Below the API an object is always named by ObjectKey, tenant included, so that a key of one tenant cannot
// be looked up in another's name (regression case RC-11). A driver with textual keys hashes them to 128 bits
// at its border.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kvlift {

/// A process that runs a client; the holder of what its SSD keeps. Also names its DRAM segment's owner.
enum class NodeId : std::uint32_t { none = 0xffffffff };
/// A range of DRAM that a node mounts to the pool.
enum class SegmentId : std::uint32_t { none = 0xffffffff };
enum class TenantId : std::uint32_t { standard = 0 };
/// Objects of one group are leased and evicted together; `none` is no group.
enum class GroupId : std::uint64_t { none = 0 };

constexpr std::uint32_t index(NodeId n) { return static_cast<std::uint32_t>(n); }
constexpr std::uint32_t index(SegmentId s) { return static_cast<std::uint32_t>(s); }

/// 128 bits that stand for the caller's key inside its tenant.
struct Key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Key&, const Key&) = default;
};

struct ObjectKey {
  Key key;
  TenantId tenant = TenantId::standard;
  friend constexpr auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

/// Finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

constexpr std::uint64_t hash_of(const ObjectKey& k) {
  return mix64(k.key.low + mix64(k.key.high + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(k.tenant) + 1)));
}

struct ObjectKeyHash {
  std::size_t operator()(const ObjectKey& k) const { return static_cast<std::size_t>(hash_of(k)); }
};

}  // namespace kvlift
