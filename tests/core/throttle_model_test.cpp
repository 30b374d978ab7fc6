// The throttle beside a model that has its rules and nothing else: random calls, equal answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/random.hpp"
#include "tests/core/throttle_world.hpp"

namespace kvlift {
namespace {

using namespace throttle_world;

/// The rules once more, without bounds, queues or lazy expiry.
struct Model {
  struct Entry {
    State state;
    Time trigger, since;
    Generation generation;
    Woken waiters;
  };
  ThrottleSettings settings;
  std::map<ObjectKey, Entry> entries;

  void expire(Time now) {
    std::erase_if(entries, [&](const auto& pair) {
      const Entry& e = pair.second;
      if (is_live(e.state)) return now - e.since > settings.live_max;
      const Duration window = e.state == State::failed ? settings.cooldown : settings.dedup_ttl;
      const bool from_trigger = e.state == State::already_resident || e.state == State::delegated;
      return window.ns <= 0 || now - (from_trigger ? e.trigger : e.since) > window;
    });
  }
  bool grants(const ObjectKey& k) const {
    const auto found = entries.find(k);
    return found == entries.end() || (settings.dedup_ttl.ns <= 0 && found->second.state == State::triggered);
  }
};

struct Row {
  std::int64_t ttl_ns, cooldown_ns, live_max_ns;
  std::uint64_t seed;
};

/// Both side by side; each method makes one call of each and compares.
struct Pair {
  explicit Pair(const Row& row)
      : model{{.dedup_ttl = {row.ttl_ns}, .cooldown = {row.cooldown_ns}, .live_max = {row.live_max_ns}}, {}},
        world(model.settings),
        random(row.seed) {}

  void step() {
    now = now + nanoseconds(static_cast<std::int64_t>(random.below(4)));
    model.expire(now);
    n = random.below(kKeys);
    const auto found = model.entries.find(key(n));
    entry = found == model.entries.end() ? nullptr : &found->second;
    // Jobs report under the key's last generation, at times under another.
    generation = random.chance(1, 8) ? static_cast<Generation>(random.below(200)) : last[n];
    const std::uint64_t what = random.below(12);
    if (what < 3) return reserve();
    if (what < 8) return report(kAllStates[1 + random.below(5)]);
    if (what == 8) return release();
    if (what == 9) return wait(WaiterId{random.below(5)});
    if (what == 10) return cancel(WaiterId{random.below(5)});
    ask_state();
  }

  void reserve() {
    std::vector<std::uint64_t> chosen(random.below(6));
    Keys batch;
    for (std::uint64_t& c : chosen) batch.push_back(key(c = random.below(kKeys)));
    const auto out = world.reserve(batch, now);
    std::size_t next = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!model.grants(batch[i])) continue;
      ASSERT_LT(next, out.size());
      ASSERT_EQ(out[next].index, i);
      const Generation given = out[next++].generation;
      const auto again = model.entries.find(batch[i]);
      ASSERT_EQ(again != model.entries.end(), given == last[chosen[i]]);
      last[chosen[i]] = given;
      model.entries[batch[i]] = {State::triggered, now, now, given, {}};
    }
    ASSERT_EQ(next, out.size());
  }

  void report(State to) {
    const bool applied = current() && may_follow(entry->state, to);
    world.woken.clear();
    ASSERT_EQ(world.report(n, generation, to, now), applied) << to_string(to);
    if (!applied) return;
    ASSERT_EQ(world.woken, entry->waiters);
    *entry = {to, entry->trigger, now, generation, {}};
  }

  void release() {
    const bool applied = current() && is_live(entry->state);
    world.woken.clear();
    ASSERT_EQ(world.throttle.release(key(n), generation, now, world.woken), applied);
    if (!applied) return;
    ASSERT_EQ(world.woken, entry->waiters);
    model.entries.erase(key(n));
  }

  void wait(WaiterId id) {
    const WaitAnswer expected = entry == nullptr                   ? WaitAnswer::not_live
                                : entry->state == State::in_flight ? WaitAnswer::waiting
                                : entry->state == State::completed ? WaitAnswer::completed
                                                                   : WaitAnswer::not_live;
    ASSERT_EQ(world.throttle.wait(key(n), id, now), expected);
    if (expected != WaitAnswer::waiting) return;
    if (std::find(entry->waiters.begin(), entry->waiters.end(), id) == entry->waiters.end()) {
      entry->waiters.push_back(id);
    }
  }

  void cancel(WaiterId id) {
    if (entry == nullptr) return;  // an expired entry keeps its waits until it is taken back
    ASSERT_EQ(world.throttle.cancel_wait(key(n), id), std::erase(entry->waiters, id) == 1);
  }

  void ask_state() {
    const auto expected = entry == nullptr ? std::nullopt : std::optional<State>(entry->state);
    ASSERT_EQ(world.throttle.state_of(key(n), now), expected);
  }

  bool current() const { return entry != nullptr && entry->generation == generation; }

  static constexpr std::uint64_t kKeys = 48;
  Model model;
  World world;
  Random random;
  std::map<std::uint64_t, Generation> last;
  Time now;
  std::uint64_t n = 0;
  Model::Entry* entry = nullptr;
  Generation generation = Generation::none;
};

TEST(ThrottleModel, AHundredThousandRandomCallsGetEqualAnswers) {
  const Row rows[] = {
      {30, 5, 600, 1}, {30, 5, 40, 2}, {0, 5, 100, 3}, {30, 0, 100, 4}, {0, 0, 20, 5}, {5, 30, 10, 6}, {1, 1, 1, 7},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.seed);
    Pair pair(row);
    for (int i = 0; i < 100'000 && !testing::Test::HasFatalFailure(); ++i) pair.step();
    EXPECT_GE(pair.world.throttle.size(), pair.model.entries.size());
    EXPECT_GT(pair.world.throttle.counters().stale_results, 1'000U);
  }
}

}  // namespace
}  // namespace kvlift
