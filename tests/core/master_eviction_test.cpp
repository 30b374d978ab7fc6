// Which objects leave DRAM, how many, when, and what happens to one victim.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Setup = MasterWorld::Setup;
using Keys = std::vector<std::uint64_t>;

MasterSettings evicting(double high, double ratio) {
  MasterSettings s = quiet_settings();
  s.eviction_high_watermark_ratio = high;
  s.eviction_ratio = ratio;
  return s;
}

/// Keys 0..n-1 in memory and on SSD, one millisecond apart, so that key 0 is the oldest.
void staggered(MasterWorld& w, std::uint64_t n) {
  for (std::uint64_t k = 0; k < n; ++k) {
    w.put(k);
    w.on_ssd(k);
    w.advance(milliseconds(1));
  }
}

TEST(Eviction, victims_are_the_earliest_lease_ends_and_as_many_as_the_target_says) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  staggered(w, 16);  // used 0.80, target 0.05 + 0.10, ideal ceil(16 * 0.15) = 3
  w.now = at_ms(20);
  (void)w.get(0);  // the oldest was read: it is the youngest now
  w.advance(seconds(60));
  w.tick();
  EXPECT_EQ(w.in_memory(0, 16), (Keys{0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(w.counters().objects_evicted, 3u);
  EXPECT_EQ(w.counters().bytes_evicted, static_cast<std::uint64_t>(3 * kBlock.value));
  EXPECT_EQ(w.counters().objects_lost, 0u);
}

TEST(Eviction, a_pool_exactly_at_the_watermark_is_left_alone) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  staggered(w, 15);
  w.tick();
  EXPECT_EQ(w.counters().eviction_cycles, 0u);
  EXPECT_EQ(w.master.next_tick(w.now), at(seconds(600))) << "only the reaper's look at the first put is left";
}

TEST(Eviction, the_number_is_a_minimum_and_equal_stamps_go_together) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.05)});
  w.put_all(0, 4);  // one stamp
  w.on_ssd(0, 4);
  w.advance(milliseconds(1));
  w.put_all(4, 2);
  w.on_ssd(4, 2);
  w.tick();  // ideal = ceil(6 * 0.15) = 1, and the cut is the stamp of the first four
  EXPECT_EQ(w.in_memory(0, 6), (Keys{4, 5}));
}

TEST(Eviction, objects_under_lease_are_in_the_base_but_are_no_victims) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  staggered(w, 16);
  (void)w.probe(0, 12);
  w.tick();  // ideal is 3 of 16, not 1 of the 4 that are free
  EXPECT_EQ(w.in_memory(0, 16), (Keys{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15}));
}

TEST(Eviction, skipped_victims_are_made_up_for_by_later_ones) {
  MasterSettings s = evicting(0.75, 0.10);
  s.enable_offload = true;
  s.offload_on_evict = true;
  s.offloading_queue_limit = 0;  // nothing can be queued: objects without SSD copy are skipped
  MasterWorld w({.blocks = 20, .settings = s});
  for (std::uint64_t k = 0; k < 16; ++k) {
    w.put(k);
    if (k >= 5) w.on_ssd(k);
    w.advance(milliseconds(1));
  }
  w.tick();
  EXPECT_EQ(w.in_memory(0, 16), (Keys{0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Eviction, a_promoted_object_that_was_never_leased_goes_first) {
  Policy policy = prefetch_policy();
  policy.lease = Policy::LeaseMoment::none;
  MasterWorld w({.blocks = 4, .settings = evicting(0.5, 0.05), .policy = policy});
  w.put_all(0, 2);
  w.on_ssd(0, 3);
  w.advance(seconds(1));
  ASSERT_EQ(w.promote(2), Error::OK);
  w.tick();
  EXPECT_EQ(w.in_memory(0, 3), (Keys{0, 1}));
  EXPECT_EQ(w.counters().promoted_evicted_unused, 1u);
}

TEST(Eviction, soft_pins_wait_for_a_second_pass) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  for (std::uint64_t k = 0; k < 16; ++k) {
    w.put(k, {.soft_pin_ttl = k < 8 ? std::optional(seconds(600)) : std::nullopt});
    w.advance(milliseconds(1));
  }
  w.tick();
  EXPECT_EQ(w.in_memory(0, 16), (Keys{0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15})) << "enough without pins";
}

TEST(Eviction, the_second_pass_takes_the_oldest_soft_pins_down_to_the_lower_bound_only) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  for (std::uint64_t k = 0; k < 16; ++k) {
    w.put(k, {.soft_pin_ttl = seconds(600)});
    w.advance(milliseconds(1));
  }
  w.tick();  // lower bound max(0.15 / 2, 0.05) = 0.075: ceil(16 * 0.075) = 2
  EXPECT_EQ(w.in_memory(0, 16), (Keys{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Eviction, soft_pins_hold_when_the_setting_says_so) {
  MasterSettings s = evicting(0.75, 0.10);
  s.allow_evict_soft_pinned_objects = false;
  MasterWorld w({.blocks = 20, .settings = s});
  w.put_all(0, 16, {.soft_pin_ttl = seconds(600)});
  w.tick();
  EXPECT_EQ(w.used_blocks(), 16);
  w.advance(seconds(600));  // pins end
  w.tick();
  EXPECT_LT(w.used_blocks(), 16);
}

TEST(Eviction, a_soft_pin_is_at_most_as_long_as_the_settings_allow) {
  MasterSettings s = evicting(0.75, 0.10);
  s.allow_evict_soft_pinned_objects = false;
  s.kv_soft_pin_ttl_max = seconds(1);
  MasterWorld w({.blocks = 20, .settings = s});
  w.put_all(0, 16, {.soft_pin_ttl = seconds(600)});
  w.advance(seconds(1));
  w.tick();
  EXPECT_LT(w.used_blocks(), 16);
}

TEST(Eviction, hard_pins_never_leave_and_are_not_in_the_base) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.5, 0.10)});
  w.put_all(0, 18, {.hard_pin = true});
  w.put_all(18, 2);
  w.on_ssd(18, 2);
  w.run_to(seconds(100));
  EXPECT_EQ(w.used_blocks(), 18);
  EXPECT_FALSE(w.view(18).in_memory);
}

TEST(Eviction, what_never_was_complete_is_no_victim) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.5)});
  for (std::uint64_t k = 0; k < 5; ++k) ASSERT_TRUE(w.start_put(k).ok());
  w.on_ssd(5);
  ASSERT_EQ(w.enrol(5), Error::OK);
  ASSERT_EQ(w.allocate(5), Error::OK);
  w.tick();
  EXPECT_EQ(w.used_blocks(), 6);
  EXPECT_EQ(w.counters().eviction_cycles, 0u) << "the base is empty";
}

// -- what happens to one victim -----------------------------------------------------------------------------------

struct VictimRow {
  const char* name;
  bool offload, on_evict, force;
  bool on_disk;
  std::int64_t queue_limit;
  bool accepting;
  bool in_memory_after, exists_after;
  std::uint64_t queued, counted;
};

class OneVictim : public testing::TestWithParam<VictimRow> {};

TEST_P(OneVictim, goes_as_the_table_says) {
  const VictimRow& row = GetParam();
  MasterSettings s = evicting(0.5, 0.05);
  s.enable_offload = row.offload;
  s.offload_on_evict = row.on_evict;
  s.offload_force_evict = row.force;
  s.offloading_queue_limit = row.queue_limit;
  MasterWorld w({.blocks = 1, .settings = s});
  if (!row.accepting) (void)w.pull_offloads(kNode0, false);
  w.put(1);
  for (const OffloadTask& t : w.pull_offloads(kNode0, row.accepting)) (void)w.report(1, t.version, {-1});
  if (row.on_disk) w.on_ssd(1);
  const std::uint64_t queued_at_put = w.counters().offload_queued;
  w.tick();
  EXPECT_EQ(w.view(1).in_memory, row.in_memory_after);
  EXPECT_EQ(w.view(1).error == Error::OK, row.exists_after);
  EXPECT_EQ(w.counters().offload_queued - queued_at_put, row.queued);
  EXPECT_EQ(w.counters().objects_evicted, row.counted);
  EXPECT_EQ(w.counters().objects_lost, row.exists_after ? 0u : 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Table, OneVictim,
    testing::Values(
        VictimRow{"offload_off_and_only_copy_is_gone", false, false, false, false, 10, true, false, false, 0, 1},
        VictimRow{"offload_at_put_on_disk_stays_on_ssd", true, false, false, true, 10, true, false, true, 0, 1},
        VictimRow{"offload_at_put_refused_is_gone", true, false, false, false, 10, true, false, false, 0, 1},
        VictimRow{"on_evict_on_disk_stays_on_ssd", true, true, false, true, 10, true, false, true, 0, 1},
        VictimRow{"on_evict_is_queued_and_not_counted", true, true, false, false, 10, true, true, true, 1, 0},
        VictimRow{"on_evict_force_at_its_cap_is_gone", true, true, true, false, 0, true, false, false, 0, 1},
        VictimRow{"on_evict_mailbox_full_is_skipped", true, true, false, false, 0, true, true, true, 0, 0},
        VictimRow{"on_evict_not_accepting_is_skipped", true, true, false, false, 10, false, true, true, 0, 0},
        VictimRow{"on_evict_not_accepting_force_is_gone", true, true, true, false, 10, false, false, false, 0, 1}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(EvictionOffload, one_cycle_queues_every_free_object_since_queued_ones_do_not_count) {
  MasterSettings s = evicting(0.5, 0.05);
  s.offload_on_evict = s.enable_offload = true;
  MasterWorld w({.blocks = 20, .settings = s});
  w.put_all(0, 16);
  w.advance(milliseconds(1));
  w.tick();
  EXPECT_EQ(w.counters().offload_queued, 16u);
  EXPECT_EQ(w.used_blocks(), 16);
  for (const OffloadTask& t : w.pull_offloads()) EXPECT_TRUE(w.report(t.key.key.low, t.version));
  w.tick();
  EXPECT_LT(w.used_blocks(), 16) << "room is made in a later cycle, when the bytes are on SSD";
  EXPECT_EQ(w.counters().objects_lost, 0u);
}

TEST(EvictionOffload, forced_eviction_begins_after_the_cap_of_one_cycle) {
  MasterSettings s = evicting(0.5, 0.05);
  s.offload_on_evict = s.enable_offload = s.offload_force_evict = true;
  s.offloading_queue_limit = 8;  // cap 0.5 * 8 = 4 objects a cycle
  MasterWorld w({.blocks = 20, .settings = s});
  for (std::uint64_t k = 0; k < 12; ++k) {
    w.put(k);
    w.advance(milliseconds(1));
  }
  w.tick();  // ideal = ceil(12 * 0.15) = 2: four are queued, then two are dropped
  EXPECT_EQ(w.counters().offload_queued, 4u);
  EXPECT_EQ(w.in_memory(0, 12), (Keys{0, 1, 2, 3, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(w.counters().objects_lost, 2u);
}

TEST(EvictionOffload, other_replicas_of_a_queued_object_go_at_once) {
  MasterSettings s = evicting(0.4, 0.05);
  s.offload_on_evict = s.enable_offload = true;
  MasterWorld w({.blocks = 2, .nodes = 2, .settings = s});
  w.put(1, {.replica_num = 2});
  EXPECT_EQ(w.used_blocks(), 2);
  w.tick();
  EXPECT_EQ(w.used_blocks(), 1);
  EXPECT_EQ(w.counters().objects_evicted, 1u);
  EXPECT_TRUE(w.view(1).in_memory);
}

TEST(EvictionOffload, the_source_of_an_offload_is_pinned_until_its_report) {
  MasterSettings s = evicting(0.4, 0.05);
  s.enable_offload = true;  // at put
  MasterWorld w({.blocks = 2, .settings = s});
  w.put(1);
  w.tick();
  EXPECT_TRUE(w.view(1).in_memory);
  const auto tasks = w.pull_offloads();
  ASSERT_EQ(tasks.size(), 1u);
  w.tick();
  EXPECT_TRUE(w.view(1).in_memory) << "also while the holder reads";
  EXPECT_TRUE(w.report(1, tasks[0].version));
  w.tick();
  EXPECT_FALSE(w.view(1).in_memory);
  EXPECT_TRUE(w.view(1).on_disk);
}

// -- the flag that a refused put raises -----------------------------------------------------------------------------

TEST(EvictionDemand, a_refused_put_evicts_below_the_watermark_at_the_next_tick) {
  MasterSettings s = evicting(0.95, 0.05);
  MasterWorld w({.blocks = 10, .settings = s});
  w.put_all(0, 9);  // 0.90
  w.on_ssd(0, 9);
  w.tick();
  EXPECT_EQ(w.used_blocks(), 9);
  EXPECT_EQ(w.start_put(9, {}, kBlock * 2).error, Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(10));
  w.run_to(milliseconds(10));
  EXPECT_LT(w.used_blocks(), 9);
  EXPECT_EQ(w.counters().put_refused_no_handle, 1u);
}

TEST(EvictionDemand, one_fruitful_cycle_clears_it) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.95, 0.05)});
  for (std::uint64_t k = 0; k < 9; ++k) {
    w.put(k);
    w.advance(milliseconds(1));
  }
  EXPECT_EQ(w.start_put(9, {}, kBlock * 2).error, Error::NO_AVAILABLE_HANDLE);
  w.run_to(milliseconds(200));
  EXPECT_EQ(w.counters().eviction_cycles, 1u);
  EXPECT_EQ(w.used_blocks(), 8);
}

TEST(EvictionDemand, a_refused_promotion_does_not_raise_it) {
  MasterWorld w({.blocks = 10, .settings = evicting(1.0, 0.05)});
  w.put_all(0, 10);
  w.on_ssd(0, 11);
  ASSERT_EQ(w.enrol(10), Error::OK);
  ASSERT_EQ(w.allocate(10), Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(w.counters().promotion_no_handle, 1u);
  w.run_to(seconds(10));
  EXPECT_EQ(w.counters().eviction_cycles, 0u);
  EXPECT_EQ(w.used_blocks(), 10);
}

TEST(EvictionDemand, a_put_that_wants_more_replicas_than_there_are_segments_does_not_raise_it) {
  MasterWorld w({.blocks = 10, .settings = evicting(1.0, 0.05)});
  w.put_all(0, 10);
  EXPECT_EQ(w.start_put(11, {.replica_num = 2}).error, Error::NO_AVAILABLE_HANDLE);
  w.run_to(seconds(10));
  EXPECT_EQ(w.counters().eviction_cycles, 0u);
}

TEST(EvictionDemand, a_put_refused_for_lack_of_all_its_replicas_keeps_none) {
  MasterWorld w({.blocks = 10, .settings = evicting(1.0, 0.05)});
  w.put_all(0, 9);
  EXPECT_EQ(w.start_put(11, {.replica_num = 2}).error, Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(w.used_blocks(), 9);
  EXPECT_EQ(w.view(11).error, Error::OBJECT_NOT_FOUND);
}

// -- when ---------------------------------------------------------------------------------------------------------

TEST(EvictionTime, a_full_pool_under_lease_is_looked_at_again_when_the_first_lease_ends) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.05)});
  w.put_all(0, 8);
  w.on_ssd(0, 8);
  w.now = at_ms(3);
  (void)w.probe(0, 8);
  w.tick();
  EXPECT_EQ(w.counters().eviction_cycles_fruitless, 1u);
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(10'010)) << "lease end 10,003 ms on the 10 ms grid";
  w.run_to(milliseconds(10'009));
  EXPECT_EQ(w.used_blocks(), 8);
  w.run_to(milliseconds(10'010));
  EXPECT_LT(w.used_blocks(), 8);
}

TEST(EvictionTime, a_lease_that_ends_on_the_grid_frees_its_object_in_that_tick) {
  MasterWorld w({.blocks = 2, .settings = evicting(0.5, 0.05)});
  w.put_all(0, 2);
  (void)w.probe(0, 2);
  w.tick();
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(10'000));
  w.run_to(milliseconds(10'000));
  EXPECT_EQ(w.used_blocks(), 0);
}

TEST(EvictionTime, a_renewed_lease_moves_the_look_to_its_new_end) {
  MasterWorld w({.blocks = 2, .settings = evicting(0.5, 0.05)});
  w.put_all(0, 2);
  (void)w.probe(0, 2);
  w.tick();
  w.now = at_ms(4'000);
  (void)w.probe(0, 2);
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(14'000));
}

TEST(EvictionTime, a_pool_above_the_watermark_is_evicted_in_steps_of_ten_milliseconds) {
  MasterWorld w({.blocks = 100, .settings = evicting(0.5, 0.05)});
  for (std::uint64_t k = 0; k < 81; ++k) {
    w.put(k);
    w.advance(microseconds(1));
  }
  EXPECT_EQ(w.master.next_tick(w.now), at_ms(10));
  w.run_to(milliseconds(10));
  EXPECT_EQ(w.used_blocks(), 51) << "ceil(81 * 0.36) = 30 freed";
  w.run_to(milliseconds(20));
  EXPECT_EQ(w.used_blocks(), 47) << "ceil(51 * 0.06) = 4 freed, and now at rest";
  w.run_to(milliseconds(500));
  EXPECT_EQ(w.used_blocks(), 47);
}

// The entry of an object that was gone kept its place, and the object that took over its slot inherited the lease end.
TEST(EvictionOrder, an_object_does_not_inherit_the_lease_of_one_whose_client_died) {
  MasterWorld w({.blocks = 4, .nodes = 2, .settings = evicting(0.2, 0.05)});
  w.put_all(0, 8);
  (void)w.probe(0, 8);
  w.tick();
  w.master.register_client(kNode1, 2, w.now);  // restarted: its objects are gone
  ASSERT_TRUE(w.master.mount_segment(kNode1, w.capacity, w.now).ok());
  w.advance(seconds(1));
  w.put_all(100, 3);
  w.on_ssd(100, 3);
  w.tick();
  EXPECT_FALSE(w.view(100).in_memory);
}

// -- the view of each segment (RC-66) ------------------------------------------------------------------------------

struct TwoSegments {
  explicit TwoSegments(bool per_segment) : w(setup(per_segment)) {
    w.master.register_client(kNode1, 1, w.now);
    EXPECT_TRUE(w.master.mount_segment(kNode1, kBlock * 90, w.now).ok());
    for (std::uint64_t k = 0; k < 5; ++k) w.put(100 + k, {.preferred = kNode1});
    w.advance(milliseconds(1));
    for (std::uint64_t k = 0; k < 10; ++k) w.put(k, {.preferred = kNode0});
    w.on_ssd(0, 10);
    w.on_ssd(100, 5);
  }
  static MasterWorld::Setup setup(bool per_segment) {
    MasterWorld::Setup s{.blocks = 10, .settings = evicting(0.9, 0.05)};
    s.settings.eviction_per_segment = per_segment;
    s.settings.allocation_strategy = AllocationStrategy::local_first;
    return s;
  }
  MasterWorld w;
};

TEST(EvictionSegment, without_the_option_a_full_segment_of_a_pool_with_room_is_left_alone) {
  TwoSegments t(false);
  t.w.run_to(seconds(1));
  EXPECT_EQ(t.w.in_memory(0, 10).size(), 10u);
}

TEST(EvictionSegment, with_the_option_its_own_objects_make_the_room) {
  TwoSegments t(true);
  t.w.run_to(seconds(1));
  EXPECT_LT(t.w.in_memory(0, 10).size(), 10u);
  EXPECT_EQ(t.w.in_memory(100, 5).size(), 5u) << "older, but elsewhere";
}

// Every object of the other segments went, 5 % each 10 ms, without making room where it lacked.
TEST(EvictionSegment, a_full_segment_under_lease_does_not_empty_the_others) {
  TwoSegments t(true);
  (void)t.w.probe(0, 10);
  t.w.run_to(seconds(5));
  EXPECT_EQ(t.w.in_memory(0, 10).size(), 10u);
  EXPECT_EQ(t.w.in_memory(100, 5).size(), 5u);
}

// -- groups -------------------------------------------------------------------------------------------------------

constexpr GroupId kGroup{5};

TEST(EvictionGroup, a_leased_member_protects_the_whole_group) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.05)});
  w.put_all(0, 3, {.group = kGroup});
  w.put_all(3, 5);
  w.advance(seconds(1));
  (void)w.probe(0, 1);  // members with a short lease are leased with it
  w.run_to(seconds(5));
  EXPECT_EQ(w.in_memory(0, 3), (Keys{0, 1, 2}));
}

TEST(EvictionGroup, goes_together) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.05)});
  w.put(0, {.group = kGroup});
  w.advance(milliseconds(1));
  w.put_all(1, 4);
  w.advance(milliseconds(1));
  w.put(5, {.group = kGroup});
  w.on_ssd(0, 6);
  w.tick();
  EXPECT_EQ(w.in_memory(0, 6), (Keys{1, 2, 3, 4}));
}

TEST(EvictionGroup, members_that_went_early_count_towards_the_cut) {
  MasterWorld w({.blocks = 20, .settings = evicting(0.75, 0.10)});
  w.put_all(0, 8, {.group = kGroup});  // one stamp, one group
  for (std::uint64_t k = 8; k < 16; ++k) {
    w.advance(milliseconds(1));
    w.put(k);
  }
  w.on_ssd(0, 16);
  w.tick();  // ideal 3: the group covers it
  EXPECT_EQ(w.in_memory(0, 16), (Keys{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(EvictionGroup, a_soft_pinned_member_is_not_dragged_along_by_the_first_pass) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.5, 0.05)});
  w.put(0, {.group = kGroup});
  w.put(1, {.soft_pin_ttl = seconds(60), .group = kGroup});
  w.advance(milliseconds(1));
  w.put_all(2, 4);
  w.on_ssd(0, 6);
  w.tick();
  EXPECT_EQ(w.in_memory(0, 6), (Keys{1, 2, 3, 4, 5}));
}

// The second soft-pinned member was looked up in a group that its sibling's eviction had emptied.
TEST(EvictionGroup, soft_pinned_members_go_together_in_the_second_pass) {
  MasterWorld w({.blocks = 10, .settings = evicting(0.1, 0.9)});
  w.put_all(0, 3, {.soft_pin_ttl = seconds(60), .group = kGroup});
  w.put_all(3, 2, {.soft_pin_ttl = seconds(60)});
  w.tick();
  EXPECT_EQ(w.used_blocks(), 1) << "lower bound ceil(5 * 0.65) = 4: the group and one more";
  EXPECT_EQ(w.master.object_count(), 1);
}

}  // namespace
}  // namespace kvlift
