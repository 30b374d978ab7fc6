#include "core/throttle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/random.hpp"
#include "tests/core/throttle_world.hpp"

namespace kvlift {
namespace {

using namespace throttle_world;

static_assert(std::is_copy_constructible_v<Throttle<NoMutex>>);
static_assert(!std::is_copy_constructible_v<Throttle<std::mutex>>);

// --- transitions

TEST(Throttle, OnlyTheDrawnTransitionsAreApplied) {
  const std::set<std::pair<State, State>> drawn = {
      {State::triggered, State::in_flight}, {State::triggered, State::already_resident},
      {State::triggered, State::delegated}, {State::triggered, State::failed},
      {State::in_flight, State::completed}, {State::in_flight, State::failed},
  };
  for (const State from : kAllStates) {
    for (const State to : kAllStates) {
      EXPECT_EQ(may_follow(from, to), drawn.contains({from, to})) << to_string(from) << " -> " << to_string(to);
      if (to == State::triggered) continue;  // no report asks for it
      World w;
      const Generation g = w.bring(1, from, at(0), at(1));
      const bool applied = w.report(1, g, to, at(2));
      EXPECT_EQ(applied, drawn.contains({from, to})) << to_string(from) << " -> " << to_string(to);
      EXPECT_EQ(w.throttle.state_of(key(1), at(2)), applied ? to : from);
      EXPECT_EQ(w.throttle.counters().disallowed_results, applied ? 0U : 1U);
    }
  }
}

TEST(Throttle, ReleaseForgetsLiveKeysOnly) {
  for (const State from : kAllStates) {
    World w;
    const Generation g = w.bring(1, from, at(0), at(1));
    EXPECT_EQ(w.throttle.release(key(1), g, at(1), w.woken), is_live(from)) << to_string(from);
    EXPECT_EQ(w.reserve(1, at(1)).has_value(), is_live(from)) << to_string(from);
  }
}

TEST(Throttle, StatesAreNamedAsMetricsAre) {
  EXPECT_EQ(to_string(State::triggered), "triggered");
  EXPECT_EQ(to_string(State::in_flight), "in_flight");
  EXPECT_EQ(to_string(State::completed), "completed");
  EXPECT_EQ(to_string(State::failed), "failed");
  EXPECT_EQ(to_string(State::already_resident), "already_resident");
  EXPECT_EQ(to_string(State::delegated), "delegated");
  EXPECT_EQ(to_string(static_cast<State>(99)), "unknown");
}

// --- windows

struct WindowRow {
  State state;
  bool from_entry;  // counts from entering the state, otherwise from the trigger
  Duration window;
};

TEST(Throttle, AKeyIsBlockedUpToTheLastInstantOfItsWindow) {
  const ThrottleSettings settings{.dedup_ttl = seconds(30), .cooldown = seconds(5), .live_max = seconds(600)};
  const WindowRow rows[] = {
      {State::triggered, true, seconds(600)},        {State::in_flight, true, seconds(600)},
      {State::completed, true, seconds(30)},         {State::failed, true, seconds(5)},
      {State::already_resident, false, seconds(30)}, {State::delegated, false, seconds(30)},
  };
  for (const WindowRow& row : rows) {
    World w(settings);
    const Time triggered = at(100);
    const Time entered = row.state == State::triggered ? triggered : at(103);
    w.bring(1, row.state, triggered, entered);
    const Time last = (row.from_entry ? entered : triggered) + row.window;
    EXPECT_FALSE(w.reserve(1, last)) << to_string(row.state);
    EXPECT_EQ(w.throttle.state_of(key(1), last), row.state);
    EXPECT_EQ(w.throttle.state_of(key(1), last + nanoseconds(1)), std::nullopt) << to_string(row.state);
    EXPECT_TRUE(w.reserve(1, last + nanoseconds(1))) << to_string(row.state);
    EXPECT_EQ(w.throttle.state_of(key(1), last + nanoseconds(1)), State::triggered);
  }
}

TEST(Throttle, AKeyIsDeduplicatedWithinTheTtl) {
  World w;
  w.bring(1, State::completed, at(0), at(1));
  EXPECT_FALSE(w.reserve(1, at(2)));
  EXPECT_FALSE(w.reserve(1, at(31)));
  EXPECT_TRUE(w.reserve(1, at(32)));
  EXPECT_EQ(w.throttle.counters().deduplicated, 2U);
}

TEST(Throttle, ABatchYieldsItsNewKeysOnlyInBatchOrder) {
  World w;
  ASSERT_EQ(w.reserve(key_range(0, 300), at(0)).size(), 300U);
  Keys mixed;
  for (std::uint64_t n = 0; n < 300; ++n) {
    mixed.push_back(key(n));
    mixed.push_back(key(1'000 + n));
  }
  const auto out = w.reserve(mixed, at(1));
  ASSERT_EQ(out.size(), 300U);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i].key, key(1'000 + i));
    EXPECT_EQ(out[i].index, 2 * i + 1);
    EXPECT_NE(out[i].generation, Generation::none);
  }
  EXPECT_TRUE(w.reserve(Keys{}, at(1)).empty());
}

TEST(Throttle, ADuplicateInOneBatchIsReturnedOnce) {
  World w;
  const auto out = w.reserve({key(7), key(8), key(7)}, at(0));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].index, 0U);
  EXPECT_EQ(out[1].index, 1U);
}

TEST(Throttle, TheSameKeyOfAnotherTenantIsAnotherKey) {
  World w;
  ObjectKey other = key(1);
  other.tenant = static_cast<TenantId>(5);
  EXPECT_EQ(w.reserve({key(1), other}, at(0)).size(), 2U);
}

TEST(Throttle, ZeroTtlDisablesDeduplication) {
  World w({.dedup_ttl = seconds(0)});
  EXPECT_EQ(w.reserve({key(7), key(7)}, at(0)).size(), 2U);
  EXPECT_TRUE(w.reserve(7, at(0)));
  const Generation g = w.reserve(8, at(0)).value();
  EXPECT_TRUE(w.report(8, g, State::delegated, at(0)));
  EXPECT_EQ(w.throttle.state_of(key(8), at(0)), std::nullopt);
  EXPECT_TRUE(w.reserve(8, at(0)));
}

TEST(Throttle, WithoutDeduplicationTheFirstJobToStartGetsTheKey) {
  World w({.dedup_ttl = seconds(0)});
  const Generation first = w.reserve(7, at(0)).value();
  const Generation second = w.reserve(7, at(1)).value();
  EXPECT_EQ(first, second);
  EXPECT_TRUE(w.report(7, first, State::in_flight, at(2)));
  EXPECT_FALSE(w.report(7, second, State::in_flight, at(2)));
  EXPECT_FALSE(w.reserve(7, at(3))) << "granted while in flight";
  EXPECT_TRUE(w.report(7, first, State::completed, at(4)));
  EXPECT_NE(w.reserve(7, at(4)), first);
}

TEST(Throttle, AFailedKeyIsFreeAfterTheBackOffAndNotAfterTheTtl) {
  World w;
  w.bring(1, State::failed, at(0), at(10));
  EXPECT_FALSE(w.reserve(1, at(10)));
  EXPECT_FALSE(w.reserve(1, at(15))) << "the back-off counts from the failure";
  EXPECT_TRUE(w.reserve(1, at(16)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(16)), State::triggered);
}

TEST(Throttle, AFailureBacksOffWithZeroTtlToo) {
  World w({.dedup_ttl = seconds(0)});
  w.bring(1, State::failed, at(0), at(0));
  EXPECT_FALSE(w.reserve(1, at(5)));
  EXPECT_TRUE(w.reserve(1, at(6)));
}

TEST(Throttle, WithZeroCooldownAFailedKeyIsFreeInTheSameInstant) {
  World w({.cooldown = seconds(0)});
  const Generation g = w.reserve(1, at(0)).value();
  EXPECT_TRUE(w.report(1, g, State::failed, at(0)));
  EXPECT_TRUE(w.reserve(1, at(0)));
}

TEST(Throttle, ALiveEntryDoesNotExpireUnderItsJob) {  // RC-01
  World w;
  const Generation g = w.reserve(1, at(0)).value();
  EXPECT_FALSE(w.reserve(1, at(100))) << "the job waits in a long queue";
  EXPECT_TRUE(w.report(1, g, State::in_flight, at(200)));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{9}, at(201)), WaitAnswer::waiting);
  EXPECT_FALSE(w.reserve(1, at(300)));
  EXPECT_TRUE(w.report(1, g, State::completed, at(400)));
  EXPECT_EQ(w.woken, Woken{WaiterId{9}});
}

TEST(Throttle, ALostJobFreesItsKeyAfterLiveMax) {
  World w;
  const Generation g = w.bring(1, State::in_flight, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{9}, at(1)), WaitAnswer::waiting);
  EXPECT_FALSE(w.report(1, g, State::completed, at(601))) << "nobody knows the key any more";
  EXPECT_TRUE(w.reserve(1, at(601)));
  EXPECT_EQ(w.throttle.counters().waiters_dropped, 1U);
  EXPECT_FALSE(w.throttle.cancel_wait(key(1), WaiterId{9}));
}

TEST(Throttle, AKeyResidentLongAfterItsTriggerIsFreeAtOnce) {
  World w;
  const Generation g = w.reserve(1, at(0)).value();
  EXPECT_TRUE(w.report(1, g, State::already_resident, at(31)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(31)), std::nullopt);
  EXPECT_TRUE(w.reserve(1, at(31)));
}

TEST(Throttle, ReleasedKeysAreTriggeredAgainWhenTheCooldownEnds) {  // RC-14
  World w;
  const auto batch = w.reserve(key_range(0, 100), at(0));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(w.throttle.mark_in_flight(batch[i].key, batch[i].generation, at(0)));
  }
  w.throttle.enter_cooldown(at(1));
  for (std::size_t i = 3; i < 100; ++i) {
    EXPECT_TRUE(w.throttle.release(batch[i].key, batch[i].generation, at(1), w.woken));
  }
  EXPECT_TRUE(w.throttle.in_cooldown(at(5)));
  EXPECT_FALSE(w.throttle.in_cooldown(at(6)));
  EXPECT_EQ(w.reserve(key_range(3, 97), at(6)).size(), 97U);
}

TEST(Throttle, AKeyOwnedElsewhereIsNotWaitedFor) {  // RC-19
  World w;
  w.bring(1, State::delegated, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(0)), WaitAnswer::not_live);
}

// --- generations

TEST(Throttle, ALateResultOfAnOlderRoundChangesNothing) {  // RC-20
  World w;
  const Generation first = w.bring(1, State::in_flight, at(0), at(0));
  const Generation second = w.reserve(1, at(601)).value();
  EXPECT_NE(first, second);
  EXPECT_FALSE(w.report(1, first, State::failed, at(602)));
  EXPECT_FALSE(w.throttle.release(key(1), first, at(602), w.woken));
  EXPECT_EQ(w.throttle.state_of(key(1), at(602)), State::triggered);
  EXPECT_TRUE(w.report(1, second, State::in_flight, at(602)));
  EXPECT_FALSE(w.report(1, first, State::completed, at(603)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(603)), State::in_flight);
  EXPECT_EQ(w.throttle.counters().stale_results, 3U);
}

TEST(Throttle, AReportNeverCreatesAnEntry) {
  World w;
  EXPECT_FALSE(w.report(1, Generation{1}, State::completed, at(0)));
  EXPECT_FALSE(w.report(1, Generation::none, State::in_flight, at(0)));
  EXPECT_EQ(w.throttle.size(), 0U);
  EXPECT_EQ(w.throttle.state_of(key(1), at(0)), std::nullopt);
}

TEST(Throttle, AReleasedRoundIsOverForItsJob) {
  World w;
  const Generation g = w.reserve(1, at(0)).value();
  EXPECT_TRUE(w.throttle.release(key(1), g, at(0), w.woken));
  EXPECT_FALSE(w.report(1, g, State::in_flight, at(0)));
  EXPECT_NE(w.reserve(1, at(0)), g);
}

// --- life cycle and waits

TEST(Throttle, APromotionGoesFromTriggerToCompletion) {
  World w;
  const Generation g = w.reserve(1, at(0)).value();
  EXPECT_EQ(w.throttle.state_of(key(1), at(0)), State::triggered);
  EXPECT_TRUE(w.report(1, g, State::in_flight, at(1)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(1)), State::in_flight);
  EXPECT_TRUE(w.report(1, g, State::completed, at(2)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(2)), State::completed);
}

TEST(Throttle, AResidentKeyWasNeverAttempted) {
  World w;
  const Generation g = w.bring(1, State::in_flight, at(0), at(0));
  EXPECT_FALSE(w.report(1, g, State::already_resident, at(1)));
  w.bring(2, State::already_resident, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(2), WaiterId{1}, at(0)), WaitAnswer::not_live);
}

TEST(Throttle, OnlyAKeyInFlightIsWorthAWait) {
  for (const State state : kAllStates) {
    World w;
    w.bring(1, state, at(0), at(0));
    const WaitAnswer expected = state == State::in_flight   ? WaitAnswer::waiting
                                : state == State::completed ? WaitAnswer::completed
                                                            : WaitAnswer::not_live;
    EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(1)), expected) << to_string(state);
  }
  World w;
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(0)), WaitAnswer::not_live);
  w.bring(1, State::completed, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(31)), WaitAnswer::not_live) << "its window is over";
}

TEST(Throttle, EveryWayOutOfFlightWakesEachWaiterOnceInOrder) {
  for (const int way : {0, 1, 2}) {
    World w;
    const Generation g = w.bring(1, State::in_flight, at(0), at(0));
    w.bring(2, State::in_flight, at(0), at(0));
    for (const std::uint64_t id : {5, 3, 4, 3}) {
      EXPECT_EQ(w.throttle.wait(key(1), WaiterId{id}, at(0)), WaitAnswer::waiting);
    }
    EXPECT_EQ(w.throttle.wait(key(2), WaiterId{8}, at(0)), WaitAnswer::waiting);
    w.woken = {WaiterId{99}};  // the caller's own are kept
    if (way == 0) {
      EXPECT_TRUE(w.report(1, g, State::completed, at(1)));
    } else if (way == 1) {
      EXPECT_TRUE(w.report(1, g, State::failed, at(1)));
    } else {
      EXPECT_TRUE(w.throttle.release(key(1), g, at(1), w.woken));
    }
    EXPECT_EQ(w.woken, (Woken{WaiterId{99}, WaiterId{5}, WaiterId{3}, WaiterId{4}}));
    EXPECT_FALSE(w.report(1, g, State::failed, at(2)));
    EXPECT_EQ(w.woken.size(), 4U);
    EXPECT_FALSE(w.throttle.cancel_wait(key(1), WaiterId{5}));
  }
}

TEST(Throttle, ACancelledWaitIsNotWoken) {
  World w;
  const Generation g = w.bring(1, State::in_flight, at(0), at(0));
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(w.throttle.wait(key(1), WaiterId{id}, at(0)), WaitAnswer::waiting);
  EXPECT_TRUE(w.throttle.cancel_wait(key(1), WaiterId{2}));
  EXPECT_FALSE(w.throttle.cancel_wait(key(1), WaiterId{2}));
  EXPECT_FALSE(w.throttle.cancel_wait(key(7), WaiterId{2}));
  EXPECT_TRUE(w.report(1, g, State::completed, at(1)));
  EXPECT_EQ(w.woken, (Woken{WaiterId{1}, WaiterId{3}}));
}

TEST(Throttle, WaitersAreBoundedAndTheirPlacesReturn) {
  World w({.entries_max = 64, .waiters_max = 2});
  const Generation g = w.bring(1, State::in_flight, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(0)), WaitAnswer::waiting);
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{2}, at(0)), WaitAnswer::waiting);
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{3}, at(0)), WaitAnswer::full);
  EXPECT_TRUE(w.throttle.cancel_wait(key(1), WaiterId{1}));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{3}, at(0)), WaitAnswer::waiting);
  EXPECT_TRUE(w.report(1, g, State::failed, at(1)));
  EXPECT_EQ(w.woken, (Woken{WaiterId{2}, WaiterId{3}}));
}

// --- memory-pressure cooldown

TEST(Throttle, ACooldownBlocksThenReleases) {
  World w;
  EXPECT_FALSE(w.throttle.in_cooldown(at(0)));
  w.throttle.enter_cooldown(at(10));
  EXPECT_TRUE(w.throttle.in_cooldown(at(10)));
  EXPECT_TRUE(w.throttle.in_cooldown(at(15) - nanoseconds(1)));
  EXPECT_FALSE(w.throttle.in_cooldown(at(15)));
}

TEST(Throttle, EnteringACooldownAgainExtendsItAndNeverShortensIt) {
  World w;
  w.throttle.enter_cooldown(at(10));
  w.throttle.enter_cooldown(at(12));
  w.throttle.enter_cooldown(at(11));  // another thread's clock reading arrives late
  EXPECT_TRUE(w.throttle.in_cooldown(at(16)));
  EXPECT_FALSE(w.throttle.in_cooldown(at(17)));
  EXPECT_EQ(w.throttle.counters().cooldown_entered, 3U);
}

TEST(Throttle, ZeroCooldownDisablesIt) {
  World w({.cooldown = seconds(0)});
  w.throttle.enter_cooldown(at(10));
  EXPECT_FALSE(w.throttle.in_cooldown(at(10)));
  EXPECT_EQ(w.throttle.counters().cooldown_entered, 0U);
}

// --- ends of the clock

TEST(Throttle, WindowsHoldAtTheEndsOfTheClock) {
  {
    World w;
    w.bring(1, State::completed, Time{kNever.ns - 1}, Time{kNever.ns - 1});
    EXPECT_FALSE(w.reserve(1, kNever)) << "a window that passes the end of time never ends";
  }
  {
    World w;
    w.bring(1, State::delegated, Time{kNever.ns - 1}, Time{kNever.ns - 1});
    EXPECT_FALSE(w.reserve(1, kNever));
  }
  {
    World w;
    w.bring(1, State::failed, kLongAgo, kLongAgo);
    EXPECT_FALSE(w.reserve(1, kLongAgo + seconds(5)));
    EXPECT_TRUE(w.reserve(1, kNever));
  }
  {
    World w({.dedup_ttl = kForever, .live_max = kForever});
    w.bring(1, State::completed, at(0), at(0));
    EXPECT_FALSE(w.reserve(1, kNever));
    const Generation g = w.reserve(2, at(0)).value();
    EXPECT_TRUE(w.report(2, g, State::already_resident, at(9)));
    EXPECT_EQ(w.throttle.state_of(key(2), kNever), State::already_resident);
  }
  World w;
  w.throttle.enter_cooldown(kNever);
  EXPECT_TRUE(w.throttle.in_cooldown(Time{kNever.ns - 1}));
}

TEST(Throttle, AClockThatStepsBackExpiresNothing) {
  World w;
  w.bring(1, State::completed, at(100), at(100));
  EXPECT_FALSE(w.reserve(1, at(0)));
  EXPECT_EQ(w.throttle.state_of(key(1), at(0)), State::completed);
}

// --- memory

TEST(Throttle, AFullTableRefusesNewKeysAndCountsThem) {
  World w({.entries_max = 64});
  EXPECT_EQ(w.reserve(key_range(0, 64), at(0)).size(), 64U);
  EXPECT_TRUE(w.reserve(key_range(64, 10), at(1)).empty());
  EXPECT_EQ(w.tally.refused_full, 10U);
  EXPECT_EQ(w.throttle.counters().refused_full, 10U);
  EXPECT_EQ(w.throttle.size(), 64U);
  EXPECT_FALSE(w.reserve(64, at(1))) << "a refused key is not remembered";
  EXPECT_EQ(w.throttle.state_of(key(64), at(1)), std::nullopt);
}

TEST(Throttle, ExpiredEntriesMakeRoomWithoutASweep) {
  World w({.entries_max = 64});
  for (std::uint64_t n = 0; n < 64; ++n) w.bring(n, State::completed, at(0), at(0));
  EXPECT_FALSE(w.reserve(100, at(30)));
  EXPECT_EQ(w.reserve(key_range(100, 64), at(31)).size(), 64U);
  EXPECT_EQ(w.throttle.size(), 64U);
  EXPECT_EQ(w.throttle.counters().expired_reclaimed, 64U);
}

TEST(Throttle, AReservationTakesBackAtMostTwoEntriesAKey) {
  World w;
  for (std::uint64_t n = 0; n < 1'000; ++n) w.bring(n, State::completed, at(0), at(0));
  w.reserve(key_range(5'000, 10), at(100));
  EXPECT_LE(w.throttle.counters().expired_reclaimed, 20U);
}

TEST(Throttle, MemoryIsBoundedUnderChurnWithAnyTtl) {
  for (const std::int64_t ttl : {0, 30}) {
    for (const std::size_t entries_max : {64U, 8192U}) {
      World w({.dedup_ttl = seconds(ttl), .entries_max = entries_max});
      std::size_t bytes = 0;
      std::size_t granted = 0;
      for (std::uint64_t n = 0; n < 400'000; n += 50) {
        const Time now{static_cast<std::int64_t>(n) * 1'000'000};  // 1000 new keys a second
        for (const Reservation& r : w.reserve(key_range(n, 50), now)) {
          ++granted;
          EXPECT_TRUE(w.throttle.mark_in_flight(r.key, r.generation, now));
          EXPECT_TRUE(w.throttle.mark_completed(r.key, r.generation, now, w.woken));
        }
        ASSERT_LE(w.throttle.size(), entries_max);
        bytes = std::max(bytes, w.throttle.memory_bytes());
      }
      EXPECT_LE(bytes, entries_max * 96 + 32'768);
      EXPECT_EQ(granted + w.throttle.counters().refused_full, 400'000U);
      // As many as fit each ttl, about; without one, all.
      EXPECT_GE(granted, ttl == 0 ? 400'000U : entries_max * (400 / 31));
    }
  }
}

TEST(Throttle, AnEntryTakesAboutACacheLine) {
  World w;
  w.reserve(key_range(0, 1 << 19), at(0));
  EXPECT_LE(w.throttle.memory_bytes(), w.throttle.size() * 68);
  EXPECT_EQ(World().throttle.memory_bytes(), 0U) << "an empty table costs nothing";
}

// --- values

TEST(Throttle, ACopyGoesItsOwnWay) {
  World w;
  const Generation g = w.bring(1, State::in_flight, at(0), at(0));
  EXPECT_EQ(w.throttle.wait(key(1), WaiterId{1}, at(0)), WaitAnswer::waiting);
  w.reserve(key_range(10, 3'000), at(0));
  World copy = w;
  EXPECT_EQ(copy.throttle.hash(), w.throttle.hash());
  EXPECT_TRUE(copy.report(1, g, State::completed, at(1)));
  EXPECT_EQ(copy.woken, Woken{WaiterId{1}});
  EXPECT_NE(copy.throttle.hash(), w.throttle.hash());
  EXPECT_EQ(w.throttle.state_of(key(1), at(1)), State::in_flight);
  EXPECT_TRUE(w.report(1, g, State::completed, at(1)));
  EXPECT_EQ(copy.throttle.hash(), w.throttle.hash());
  copy = World(w);
  EXPECT_EQ(copy.throttle.counters(), w.throttle.counters());
}

TEST(Throttle, TheHashSeesStateTimeGenerationAndWaits) {
  World base;
  const Generation g = base.bring(1, State::in_flight, at(0), at(0));
  std::set<std::uint64_t> seen = {base.throttle.hash()};
  World waited = base;
  EXPECT_EQ(waited.throttle.wait(key(1), WaiterId{1}, at(0)), WaitAnswer::waiting);
  EXPECT_TRUE(seen.insert(waited.throttle.hash()).second);
  World cooled = base;
  cooled.throttle.enter_cooldown(at(0));
  EXPECT_TRUE(seen.insert(cooled.throttle.hash()).second);
  World failed = base;
  failed.report(1, g, State::failed, at(1));
  EXPECT_TRUE(seen.insert(failed.throttle.hash()).second);
  World failed_later = base;
  failed_later.report(1, g, State::failed, at(2));
  EXPECT_TRUE(seen.insert(failed_later.throttle.hash()).second);
}

// --- threads

TEST(Throttle, ConcurrentProbesGrantEachKeyOnce) {
  for (int round = 0; round < 50; ++round) {
    Throttle<std::mutex> throttle({});
    const Keys keys = key_range(0, 64);
    std::vector<std::vector<Reservation>> granted(8);
    std::atomic<int> waiting = 8;
    std::vector<std::thread> threads;
    for (auto& out : granted) {
      threads.emplace_back([&] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        throttle.reserve(keys, at(0), out);
      });
    }
    for (std::thread& t : threads) t.join();
    std::map<ObjectKey, int> times;
    for (const auto& out : granted) {
      for (const Reservation& r : out) ++times[r.key];
    }
    EXPECT_EQ(times.size(), 64U);
    for (const auto& [k, n] : times) EXPECT_EQ(n, 1);
    EXPECT_EQ(throttle.counters().deduplicated, 7U * 64U);
  }
}

TEST(Throttle, ConcurrentRoundsKeepTheirBooks) {
  Throttle<std::mutex> throttle({.dedup_ttl = nanoseconds(50), .cooldown = nanoseconds(20), .entries_max = 4096});
  std::atomic<std::int64_t> clock = 0;
  std::atomic<std::uint64_t> reserved = 0;
  std::atomic<std::uint64_t> waits = 0;
  std::atomic<std::uint64_t> woken_total = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::vector<Reservation> out;
      Woken woken;
      for (int i = 0; i < 2'000; ++i) {
        const Time now{++clock};
        out.clear();
        throttle.reserve(key_range(random.below(500), 20), now, out);
        reserved += out.size();
        for (const Reservation& r : out) {
          if (!throttle.mark_in_flight(r.key, r.generation, now)) continue;
          if (throttle.wait(r.key, WaiterId{t}, now) == WaitAnswer::waiting) ++waits;
          if (random.chance(1, 8)) throttle.enter_cooldown(now);
          if (random.chance(1, 2)) {
            throttle.mark_completed(r.key, r.generation, now, woken);
          } else {
            throttle.mark_failed(r.key, r.generation, now, woken);
          }
        }
        (void)throttle.in_cooldown(now);
        (void)throttle.state_of(key(random.below(500)), now);
      }
      woken_total += woken.size();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(throttle.counters().reserved, reserved);
  EXPECT_EQ(waits, woken_total);
  EXPECT_EQ(throttle.counters().waiters_dropped, 0U);
}

}  // namespace
}  // namespace kvlift
