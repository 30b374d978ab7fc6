// Bytes that are moved only from where the places say to where they say: every get must deliver its own keys'.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/world.hpp"
#include "tests/step/run_harness.hpp"

namespace kvlift::step {
namespace {

/// Memory by (kind, node, number): who stands where. A write takes away what it overlaps.
class ByteWorld {
 public:
  void move(const Extent& e) {
    const ObjectKey* found = e.from.kind == Place::Kind::user ? &e.key : at(e.from, e);
    if (found == nullptr || *found != e.key) ++wrong_;
    switch (e.to.kind) {
      case Place::Kind::user:
        ++delivered_;
        return;
      case Place::Kind::ssd:
        ssd_[{index(e.to.node), e.key}].insert(e.version);
        return;
      case Place::Kind::segment:
      case Place::Kind::staging:
        return write(e.to, e.size.value, e.key);
      case Place::Kind::none:
        ++wrong_;
    }
  }
  void forget(const Forgotten& f) { forgotten_ += static_cast<int>(ssd_[{index(f.node), f.key}].erase(f.version)); }

  int wrong() const { return wrong_; }
  int delivered() const { return delivered_; }
  int forgotten() const { return forgotten_; }
  std::size_t on_ssd() const {
    std::size_t n = 0;
    for (const auto& [key, versions] : ssd_) n += versions.size();
    return n;
  }

 private:
  struct Content {
    std::int64_t size;
    ObjectKey key;
  };
  using Where = std::tuple<Place::Kind, std::uint32_t, std::uint64_t>;

  const ObjectKey* at(const Place& p, const Extent& e) {
    if (p.kind == Place::Kind::ssd) return ssd_[{index(p.node), e.key}].contains(e.version) ? &e.key : nullptr;
    auto& memory = memory_[{p.kind, index(p.node), p.number}];
    const auto found = memory.find(p.offset);
    return found == memory.end() || found->second.size != e.size.value ? nullptr : &found->second.key;
  }
  void write(const Place& p, std::int64_t size, const ObjectKey& key) {
    auto& memory = memory_[{p.kind, index(p.node), p.number}];
    auto it = memory.lower_bound(p.offset);
    if (it != memory.begin() && std::prev(it)->first + std::prev(it)->second.size > p.offset) --it;
    while (it != memory.end() && it->first < p.offset + size) it = memory.erase(it);
    memory[p.offset] = {size, key};
  }

  std::map<Where, std::map<std::int64_t, Content>> memory_;
  std::map<std::pair<std::uint32_t, ObjectKey>, std::set<std::uint64_t>> ssd_;
  int wrong_ = 0, delivered_ = 0, forgotten_ = 0;
};

struct Moved {
  ByteWorld world;
  RunResult result;
  int effects_with_other_bytes = 0;
};

Moved run_with_bytes(RunPlan plan) {
  plan.places = true;
  Moved moved;
  World world(plan);
  StepDriver driver(plan.platform, plan.seed, FaultRates::none());
  std::map<EffectId, std::vector<Extent>> under_way;
  const auto take = [&] {
    for (const Forgotten& f : world.places().forgotten) moved.world.forget(f);
    for (const Effect& e : world.effects()) {
      std::vector<Extent> extents(world.places().extents.begin() + e.first_extent,
                                  world.places().extents.begin() + e.first_extent + e.extents);
      Bytes sum{0};
      for (const Extent& extent : extents) sum += extent.size;
      const bool moves =
          e.kind == EffectKind::disk_read || e.kind == EffectKind::disk_write || e.kind == EffectKind::transfer;
      if (sum != (moves ? e.bytes : Bytes{0})) ++moved.effects_with_other_bytes;
      if (!extents.empty()) under_way[e.id] = std::move(extents);
    }
    world.places().clear();
    driver.take(world.effects());
  };
  world.start(driver.now());
  take();
  Completion completion;
  while (!world.done() && driver.next(completion)) {
    if (const auto it = under_way.find(completion.id); it != under_way.end()) {
      for (const Extent& e : it->second) moved.world.move(e);
      under_way.erase(it);
    }
    world.on(completion, driver.now());
    take();
  }
  moved.result = world.result();
  return moved;
}

TEST(Places, EveryGetDeliversItsOwnKeysBytesFromBothTiers) {
  RunPlan plan = small_run(12, 4);
  plan.policy = *policy_preset("rfc-4271");
  const Moved moved = run_with_bytes(plan);
  EXPECT_EQ(moved.world.wrong(), 0);
  EXPECT_EQ(moved.effects_with_other_bytes, 0);
  const Counters& counters = moved.result.phases.back().counters;
  EXPECT_GT(count_of(counters, "get_keys_disk") + count_of(counters, "get_keys_memory"), 0U);
  EXPECT_EQ(static_cast<std::uint64_t>(moved.world.delivered()),
            count_of(counters, "get_keys_disk") + count_of(counters, "get_keys_memory"));
  EXPECT_GT(count_of(counters, "promotions_completed"), 0U);
}

TEST(Places, WhatTheSsdEvictsIsForgottenSoThatTheDeviceHoldsNoMoreThanItsQuota) {
  RunPlan plan = small_run(40, 2);
  plan.store.holder.ssd_bytes = mebibytes(32);
  plan.store.holder.ssd_eviction = SsdEviction::fifo;
  plan.store.holder.bucket_bytes = mebibytes(4);
  const Moved moved = run_with_bytes(plan);
  EXPECT_EQ(moved.world.wrong(), 0);
  EXPECT_GT(moved.world.forgotten(), 0);
  EXPECT_LE(static_cast<std::int64_t>(moved.world.on_ssd()), (32LL << 20) / (16 * 65'536));
}

TEST(Places, AreNotFilledWhenThePlanDoesNotAsk) {
  const RunPlan plan = small_run();
  World world(plan);
  world.start(Time{});
  EXPECT_TRUE(world.places().extents.empty());
}

}  // namespace
}  // namespace kvlift::step
