#include "core/staging_table.hpp"

#include <algorithm>
#include <iterator>

#include "core/assert.hpp"

namespace kvlift {

StagingTable::StagingTable(const StagingTable& other)
    : arena_(other.arena_),
      shared_(other.shared_),
      kept_(other.kept_),
      windows_(other.windows_),
      where_(other.where_),
      idle_(other.idle_),
      users_(other.users_) {
  for (auto it = idle_.begin(); it != idle_.end(); ++it) windows_[*it].idle_at = it;
}

std::optional<Staged> StagingTable::reserve(Bytes footprint) {
  auto staged = arena_.reserve(footprint);
  while (!staged && !idle_.empty()) {
    const std::uint32_t oldest = idle_.front();
    idle_.pop_front();
    forget(oldest);
    staged = arena_.reserve(footprint);
  }
  return staged;
}

std::uint32_t StagingTable::open(const Staged& staged, std::span<const Object> objects) {
  const std::uint32_t number = windows_.acquire();
  Window& window = windows_[number];
  window.reading = true;
  window.users = 1;
  window.staged = staged;
  window.objects.assign(objects.begin(), objects.end());
  window.waiters.clear();
  ++users_;
  for (std::uint32_t i = 0; shared_ && i < window.objects.size(); ++i) {
    // Other bytes of the key may stand here still; the newest are found.
    if (Loan* at = where_.find(window.objects[i].key)) {
      *at = {number, i};
    } else {
      where_.emplace(window.objects[i].key, {number, i});
    }
  }
  return number;
}

std::optional<StagingTable::Loan> StagingTable::find(const ObjectKey& key, std::uint64_t version, Bytes size) const {
  const Loan* at = where_.find(key);
  if (at == nullptr) return std::nullopt;
  const Object& there = object(*at);
  return there.good && there.version == version && there.size == size ? std::optional(*at) : std::nullopt;
}

void StagingTable::join(std::uint32_t number) {
  Window& window = windows_[number];
  KVLIFT_ASSERT(window.live);
  if (window.users++ == 0) idle_.erase(window.idle_at);
  ++users_;
}

bool StagingTable::wait(std::uint32_t number, StagingWaiter waiter) {
  Window& window = windows_[number];
  KVLIFT_ASSERT(window.live && window.users > 0);
  if (window.reading) window.waiters.push_back(waiter);
  return window.reading;
}

void StagingTable::end_read(std::uint32_t number, std::span<const std::uint32_t> failed,
                            std::vector<StagingWaiter>& woken) {
  Window& window = windows_[number];
  KVLIFT_ASSERT(window.live && window.reading);
  window.reading = false;
  for (const std::uint32_t entry : failed) window.objects[entry].good = false;
  woken.insert(woken.end(), window.waiters.begin(), window.waiters.end());
  window.waiters.clear();
}

void StagingTable::leave(std::uint32_t number, StagingWaiter waiter) {
  Window& window = windows_[number];
  KVLIFT_ASSERT(window.live && window.users > 0);
  std::erase(window.waiters, waiter);
  --users_;
  if (--window.users > 0) return;
  KVLIFT_ASSERT(window.waiters.empty());
  const bool has_good =
      std::any_of(window.objects.begin(), window.objects.end(), [](const Object& o) { return o.good; });
  if (kept_ && has_good && !window.reading) {
    window.idle_at = idle_.insert(idle_.end(), number);
  } else {
    forget(number);
  }
}

/// Its room is free and nothing finds it any more.
void StagingTable::forget(std::uint32_t number) {
  Window& window = windows_[number];
  for (const Object& object : window.objects) {
    const Loan* at = where_.find(object.key);
    if (at != nullptr && at->window == number) where_.erase(object.key);
  }
  arena_.release(window.staged);
  windows_.release(number);
}

std::vector<StagingWaiter> StagingTable::take_waiters() {
  std::vector<StagingWaiter> all;
  for (std::uint32_t w = 0; w < windows_.size(); ++w) {
    Window& window = windows_[w];
    if (!window.live) continue;
    all.insert(all.end(), window.waiters.begin(), window.waiters.end());
    window.waiters.clear();
  }
  return all;
}

}  // namespace kvlift
