// What one holder keeps on its SSD: buckets of objects, their quota and their eviction (section 3.3).
//
// A bucket is written and deleted as a whole, so its bytes count until the whole bucket is gone, whatever was
// removed from it (RC-39). Objects become visible here before the master hears of them (RC-12).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/flat_map.hpp"
#include "core/ids.hpp"
#include "core/settings.hpp"
#include "core/units.hpp"

namespace kvlift {

class SsdIndex {
 public:
  struct Object {
    ObjectKey key;
    Bytes size;
    std::uint64_t version = 0;
    bool intact = true;  ///< false: other bytes were written than the key's (known to tests only)
    bool was_read = false;
  };

  SsdIndex(Bytes quota, std::int64_t keys_max, SsdEviction eviction)
      : quota_(quota), keys_max_(keys_max), eviction_(eviction) {}

  /// Size in bytes; empty when the key is not here. This look-up guards every promotion (section 5.4).
  std::optional<Bytes> size_of(const ObjectKey& key) const;
  /// Version of the object whose bytes are here; empty when the key is not.
  std::optional<std::uint64_t> version_of(const ObjectKey& key) const;
  /// False when other bytes than the key's were written; an object deleted meanwhile was read before it went.
  bool intact(const ObjectKey& key) const;
  /// A read of the key: moves its bucket to the young end when eviction is lru. True when it was read before.
  bool touch(const ObjectKey& key);

  /// Buckets that must go so that `bytes` in `keys` objects fit; their live keys are appended to `victims`.
  /// False when they cannot be made to fit. Nothing is changed.
  [[nodiscard]] bool plan_room(Bytes bytes, std::int64_t keys, std::vector<std::uint32_t>& buckets,
                               std::vector<ObjectKey>& victims) const;
  /// Buckets beyond `high` x quota, oldest first, until usage is at most `low` x quota.
  void plan_watermark(double high, double low, std::vector<std::uint32_t>& buckets,
                      std::vector<ObjectKey>& victims) const;
  /// Deletes a bucket and what is left in it. The master was told before.
  void erase_bucket(std::uint32_t bucket);
  /// Adds a bucket that is on the device; returns its number. Keys that are here already are left out.
  std::uint32_t insert_bucket(std::span<const Object> objects);
  /// Takes one object out of the index; its bytes stay with the bucket until that is empty.
  void erase(const ObjectKey& key);

  bool has_room(Bytes bytes) const { return used_ + bytes <= quota_; }
  Bytes used() const { return used_; }
  Bytes quota() const { return quota_; }
  std::int64_t keys() const { return static_cast<std::int64_t>(where_.size()); }
  /// From now on objects that leave the device are noted for take_forgotten.
  void note_forgotten() { notes_ = true; }
  /// What left the device since the last call.
  std::vector<Object> take_forgotten() { return std::exchange(forgotten_, {}); }
  /// Every object, oldest bucket first: the rescan after a restart.
  void list(std::vector<Object>& out) const;

 private:
  struct Bucket {
    std::vector<Object> objects;
    Bytes bytes;
    std::int64_t live = 0;
    std::uint64_t age = 0;  ///< place in eviction order: smaller is older
    bool present = false;
  };
  struct Place {
    std::uint32_t bucket = 0;
    std::uint32_t position = 0;
  };
  bool lives_in(std::uint32_t bucket, const ObjectKey& key) const;
  void append_victims(std::uint32_t bucket, std::vector<ObjectKey>& victims) const;
  void forget(const Object& object) {
    if (notes_) forgotten_.push_back(object);
  }

  Bytes quota_;
  std::int64_t keys_max_;
  SsdEviction eviction_;
  Bytes used_;
  std::uint64_t next_age_ = 0;
  FlatMap<Place> where_;
  std::map<std::uint64_t, std::uint32_t> by_age_;  // age -> bucket, oldest first
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> free_;
  bool notes_ = false;
  std::vector<Object> forgotten_;
};

}  // namespace kvlift
