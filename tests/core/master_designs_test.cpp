// What sets the designs apart at the master: each rule here holds for the presets that it names and for no other.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

using Names = std::set<std::string_view>;

MasterWorld::Setup setup_of(std::string_view preset, std::int64_t blocks = 100) {
  return {.blocks = blocks, .settings = quiet_settings(), .policy = *policy_preset(preset)};
}

/// The designs, without their variants, for which `rule` holds.
template <class Rule>
Names designs_where(Rule rule) {
  Names names;
  for (const std::string_view name : {"promotion-on-hit", "concept-2213", "impl-2646", "rfc-4271", "router-3417"}) {
    if (rule(name)) names.insert(name);
  }
  return names;
}

/// As the design's trigger brings a task for key `n` of node 0 about; no lease of a reader is left behind.
Error ask(MasterWorld& w, std::string_view preset, std::uint64_t n) {
  const Policy policy = *policy_preset(preset);
  if (policy.trigger == Policy::Trigger::router_call) return w.master.prefetch_to_memory(key(n), w.now);
  if (policy.trigger != Policy::Trigger::on_hit) return w.enrol(n);
  (void)w.get(n);
  (void)w.get(n);
  w.advance(quiet_settings().kv_lease_ttl + milliseconds(1));
  return w.master.has_promotion_task(key(n)) ? Error::OK : Error::REPLICA_IS_NOT_READY;
}

TEST(Designs, every_preset_has_a_name_of_its_own_and_differs_from_the_others) {
  const auto& names = policy_preset_names();
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_NE(names[a], names[b]);
      EXPECT_FALSE(*policy_preset(names[a]) == *policy_preset(names[b])) << names[a] << " is " << names[b];
    }
  }
}

TEST(Designs, a_failed_promotion_leaves_a_lease_only_with_the_router) {
  EXPECT_EQ(designs_where([](std::string_view preset) {
              MasterWorld w(setup_of(preset));
              w.on_ssd(1);
              EXPECT_EQ(ask(w, preset, 1), Error::OK) << preset;
              EXPECT_EQ(w.fail(1), Error::OK) << preset;
              EXPECT_EQ(w.counters().leases_dangling > 0, w.lease(1) > w.now) << preset;
              return w.lease(1) > w.now;
            }),
            Names{"router-3417"});
}

TEST(Designs, a_committed_promotion_is_leased_where_the_policy_says_at_commit) {
  EXPECT_EQ(designs_where([](std::string_view preset) {
              MasterWorld w(setup_of(preset));
              w.on_ssd(1);
              EXPECT_EQ(ask(w, preset, 1), Error::OK) << preset;
              w.advance(quiet_settings().kv_lease_ttl + milliseconds(1));  // a lease of the queue is spent
              EXPECT_EQ(w.allocate(1), Error::OK) << preset;
              EXPECT_EQ(w.commit(1), Error::OK) << preset;
              return w.lease(1) > w.now;
            }),
            (Names{"impl-2646", "rfc-4271"}));
}

TEST(Designs, an_allocation_evicts_others_only_in_the_concept) {
  EXPECT_EQ(designs_where([](std::string_view preset) {
              MasterWorld w(setup_of(preset, 10));
              w.on_ssd(99);
              EXPECT_EQ(ask(w, preset, 99), Error::OK) << preset;
              const bool parted = policy_preset(preset)->dram != Policy::DramSource::shared_pool;
              w.put_all(0, parted ? 9 : 10);
              w.advance(milliseconds(1));
              (void)w.allocate(99);
              return w.counters().objects_evicted > 0;
            }),
            Names{"concept-2213"});
}

TEST(Designs, the_watermark_gates_promotion_on_hit_and_the_router) {
  EXPECT_EQ(designs_where([](std::string_view preset) {
              MasterWorld w(setup_of(preset, 10));
              w.on_ssd(99);
              w.put_all(0, 9);  // the watermark is 0.9
              return ask(w, preset, 99) != Error::OK;
            }),
            (Names{"promotion-on-hit", "router-3417"}));
}

TEST(Designs, registering_a_resident_key_is_answered_ok_only_by_2646) {
  EXPECT_EQ(designs_where([](std::string_view preset) {
              if (policy_preset(preset)->trigger != Policy::Trigger::exist_probe) return false;
              MasterWorld w(setup_of(preset));
              w.put(1);
              w.on_ssd(1);
              const Error answer = w.enrol(1);
              EXPECT_FALSE(w.master.has_promotion_task(key(1)));
              return answer == Error::OK;
            }),
            Names{"impl-2646"});
}

// -- variants ---------------------------------------------------------------------------------------------------

TEST(RouterBuffer, makes_room_by_dropping_its_own_copies_and_touches_no_other) {
  MasterWorld::Setup setup = setup_of("router-3417", 20);  // 2 blocks of buffer
  setup.settings.kv_lease_ttl = milliseconds(100);
  MasterWorld w(setup);
  w.put_all(50, 5);
  w.on_ssd(0, 3);
  for (std::uint64_t n = 0; n < 3; ++n) {
    EXPECT_EQ(w.master.prefetch_to_memory(key(n), w.now), Error::OK);
    EXPECT_EQ(w.allocate(n), Error::OK);
    EXPECT_EQ(w.commit(n), Error::OK);
    w.advance(milliseconds(101));
  }
  EXPECT_EQ(w.in_memory(0, 3), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(w.in_memory(50, 5).size(), 5U);
}

TEST(RouterBuffer, is_all_that_a_strict_router_uses) {
  for (const auto& [preset, third] :
       {std::pair{"router-3417", Error::NO_AVAILABLE_HANDLE},
        std::pair{"router-3417-partition", Error::NO_AVAILABLE_HANDLE}, std::pair{"router-3417-loose", Error::OK}}) {
    MasterWorld w(setup_of(preset, 20));
    w.on_ssd(0, 3);
    for (std::uint64_t n = 0; n < 3; ++n) {
      ASSERT_EQ(w.master.prefetch_to_memory(key(n), w.now), Error::OK);
      EXPECT_EQ(w.allocate(n), n < 2 ? Error::OK : third) << preset;
      if (n < 2) {
        EXPECT_EQ(w.commit(n), Error::OK);
      }
    }
  }
}

TEST(OnHitVariants, hand_out_one_task_a_pull_or_as_many_as_they_say) {
  for (const auto& [preset, tasks] : {std::pair{"promotion-on-hit", 1U}, std::pair{"promotion-on-hit-32", 5U},
                                      std::pair{"promotion-on-hit-own-loop", 5U}}) {
    MasterWorld w(setup_of(preset));
    w.on_ssd(0, 5);
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t n = 0; n < 5; ++n) (void)w.get(n);
    }
    EXPECT_EQ(w.pull().size(), tasks) << preset;
  }
}

TEST(OnHitVariants, a_task_outlives_its_budget_only_where_there_is_none) {
  for (const auto& [preset, kept] :
       {std::pair{"promotion-on-hit-32", true}, std::pair{"promotion-on-hit-budget", false}}) {
    MasterWorld w(setup_of(preset));
    w.on_ssd(1);
    (void)w.get(1);
    (void)w.get(1);
    w.advance(seconds(11));
    EXPECT_EQ(w.pull().size(), kept ? 1U : 0U) << preset;
    EXPECT_EQ(w.counters().promotion_late, kept ? 0U : 1U) << preset;
    EXPECT_EQ(w.in_flight(), kept ? 1 : 0) << preset;
  }
}

TEST(OnHitVariants, a_refusal_of_the_moment_is_retried_only_by_2690) {
  for (const auto& [preset, retried] :
       {std::pair{"promotion-on-hit", true}, std::pair{"promotion-on-hit-no-retry", false}}) {
    MasterWorld::Setup setup = setup_of(preset);
    setup.settings.promotion_queue_limit = 1;
    MasterWorld w(setup);
    w.on_ssd(1, 2);
    for (int round = 0; round < 2; ++round) {
      (void)w.get(1);
      (void)w.get(2);
    }
    ASSERT_EQ(w.pull(), std::vector<std::uint64_t>{1});
    ASSERT_EQ(w.fail(1), Error::OK);
    w.run_to(seconds(30));
    EXPECT_EQ(w.master.has_promotion_task(key(2)), retried) << preset;
  }
}

}  // namespace
}  // namespace kvlift
