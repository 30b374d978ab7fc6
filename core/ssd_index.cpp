#include "core/ssd_index.hpp"

#include "core/assert.hpp"

namespace kvlift {

std::optional<Bytes> SsdIndex::size_of(const ObjectKey& key) const {
  const Place* at = where_.find(key);
  if (at == nullptr) return std::nullopt;
  return buckets_[at->bucket].objects[at->position].size;
}

std::optional<std::uint64_t> SsdIndex::version_of(const ObjectKey& key) const {
  const Place* at = where_.find(key);
  if (at == nullptr) return std::nullopt;
  return buckets_[at->bucket].objects[at->position].version;
}

bool SsdIndex::intact(const ObjectKey& key) const {
  const Place* at = where_.find(key);
  return at == nullptr || buckets_[at->bucket].objects[at->position].intact;
}

bool SsdIndex::touch(const ObjectKey& key) {
  const Place* at = where_.find(key);
  if (at == nullptr) return false;
  Bucket& bucket = buckets_[at->bucket];
  const bool again = std::exchange(bucket.objects[at->position].was_read, true);
  if (eviction_ != SsdEviction::lru) return again;
  by_age_.erase(bucket.age);
  bucket.age = next_age_++;
  by_age_.emplace(bucket.age, at->bucket);
  return again;
}

bool SsdIndex::lives_in(std::uint32_t bucket, const ObjectKey& key) const {
  const Place* at = where_.find(key);
  return at != nullptr && at->bucket == bucket;
}

void SsdIndex::append_victims(std::uint32_t bucket, std::vector<ObjectKey>& victims) const {
  for (const Object& object : buckets_[bucket].objects) {
    if (lives_in(bucket, object.key)) victims.push_back(object.key);
  }
}

bool SsdIndex::plan_room(Bytes bytes, std::int64_t keys, std::vector<std::uint32_t>& buckets,
                         std::vector<ObjectKey>& victims) const {
  if (bytes > quota_ || keys > keys_max_) return false;
  Bytes used = used_;
  std::int64_t live = this->keys();
  if (used + bytes <= quota_ && live + keys <= keys_max_) return true;
  if (eviction_ == SsdEviction::none) return false;
  for (const auto& [age, b] : by_age_) {
    if (used + bytes <= quota_ && live + keys <= keys_max_) break;
    buckets.push_back(b);
    append_victims(b, victims);
    used -= buckets_[b].bytes;
    live -= buckets_[b].live;
  }
  return true;
}

void SsdIndex::plan_watermark(double high, double low, std::vector<std::uint32_t>& buckets,
                              std::vector<ObjectKey>& victims) const {
  const auto limit = [this](double ratio) { return static_cast<double>(quota_.value) * ratio; };
  if (eviction_ == SsdEviction::none || static_cast<double>(used_.value) <= limit(high)) return;
  Bytes used = used_;
  for (const auto& [age, b] : by_age_) {
    if (static_cast<double>(used.value) <= limit(low)) break;
    buckets.push_back(b);
    append_victims(b, victims);
    used -= buckets_[b].bytes;
  }
}

void SsdIndex::erase_bucket(std::uint32_t bucket) {
  Bucket& b = buckets_[bucket];
  KVLIFT_ASSERT(b.present);
  for (const Object& object : b.objects) {
    if (!lives_in(bucket, object.key)) continue;
    where_.erase(object.key);
    forget(object);
  }
  by_age_.erase(b.age);
  used_ -= b.bytes;
  b = Bucket{};
  free_.push_back(bucket);
}

std::uint32_t SsdIndex::insert_bucket(std::span<const Object> objects) {
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(buckets_.size());
    buckets_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Bucket& b = buckets_[number];
  b.present = true;
  b.age = next_age_++;
  by_age_.emplace(b.age, number);
  for (const Object& object : objects) {
    const Place place{number, static_cast<std::uint32_t>(b.objects.size())};
    if (!where_.emplace(object.key, place)) {
      if (version_of(object.key) != object.version) forget(object);  // the older copy serves
      continue;
    }
    b.objects.push_back(object);
    b.bytes += object.size;
    ++b.live;
  }
  used_ += b.bytes;
  return number;
}

void SsdIndex::erase(const ObjectKey& key) {
  const Place* at = where_.find(key);
  if (at == nullptr) return;
  const std::uint32_t bucket = at->bucket;
  forget(buckets_[bucket].objects[at->position]);
  where_.erase(key);
  if (--buckets_[bucket].live == 0) erase_bucket(bucket);
}

void SsdIndex::list(std::vector<Object>& out) const {
  for (const auto& [age, b] : by_age_) {
    for (const Object& object : buckets_[b].objects) {
      if (lives_in(b, object.key)) out.push_back(object);
    }
  }
}

}  // namespace kvlift
