// What a probe costs: hot keys, two threads, and the slowest call while millions of entries expire.
//
//   kvlift_throttle_bench --benchmark_counters_tabular=true
//
// Targets: ns_per_key of a blocked key <= 100; speedup of two threads >= 1.6; worst_over_median of a 128-key call
// with 10 million entries expiring <= 10.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/random.hpp"
#include "core/throttle.hpp"

namespace kvlift {
namespace {

constexpr std::size_t kBatch = 128;

ObjectKey key_of(std::uint64_t n) { return {{mix64(n), n}, TenantId::standard}; }

std::vector<ObjectKey> keys_of(std::uint64_t first, std::size_t count) {
  std::vector<ObjectKey> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(first + i);
  return keys;
}

/// CPU time of this thread: a neighbour on the machine does not count as a slow call.
std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::int64_t wall_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Probes of known keys: batch after batch of runs of neighbours in a table of `population` keys.
template <class Mutex>
void probe_hot(Throttle<Mutex>& throttle, const std::vector<ObjectKey>& keys, std::size_t calls, std::uint64_t seed) {
  std::vector<Reservation> out;
  Random random(seed);
  const std::size_t batches = keys.size() / kBatch;
  for (std::size_t i = 0; i < calls; ++i) {
    const std::size_t first = static_cast<std::size_t>(random.below(batches)) * kBatch;
    benchmark::DoNotOptimize(throttle.reserve(std::span(keys).subspan(first, kBatch), Time{2}, out));
  }
}

template <class Mutex>
void fill(Throttle<Mutex>& throttle, const std::vector<ObjectKey>& keys) {
  std::vector<Reservation> out;
  throttle.reserve(keys, Time{1}, out);
}

template <class Mutex>
void hot_keys(benchmark::State& state) {
  Throttle<Mutex> throttle({.entries_max = 16 << 20});
  const std::vector<ObjectKey> keys = keys_of(0, static_cast<std::size_t>(state.range(0)));
  fill(throttle, keys);
  constexpr std::size_t kCalls = 64;
  std::uint64_t seed = 0;
  for (auto _ : state) probe_hot(throttle, keys, kCalls, ++seed);
  const auto probed = static_cast<double>(state.iterations() * static_cast<std::int64_t>(kCalls * kBatch));
  state.counters["ns_per_key"] =
      benchmark::Counter(probed * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_entry"] =
      static_cast<double>(throttle.memory_bytes()) / static_cast<double>(throttle.size());
}
BENCHMARK(hot_keys<NoMutex>)->Arg(4 << 10)->Arg(256 << 10)->Arg(1 << 20);
BENCHMARK(hot_keys<std::mutex>)->Arg(4 << 10)->Arg(256 << 10)->Arg(1 << 20);

/// Spins, then yields: the kind of lock that suits sections of less than a microsecond.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++spins % 1'000 == 0) std::this_thread::yield();
        __builtin_ia32_pause();
      }
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_ = false;
};

void pin_to(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// The same work by one thread and by two at a time, on one table. Rounds are shorter than a time slice and the
/// quickest counts, so that neighbours on the machine do not; two threads begin a round when both are running.
template <class Mutex>
void two_threads(benchmark::State& state) {
  Throttle<Mutex> throttle({});
  const std::vector<ObjectKey> keys = keys_of(0, static_cast<std::size_t>(state.range(0)));
  fill(throttle, keys);
  constexpr std::size_t kCalls = 100;
  std::atomic<std::uint64_t> asked = 0;
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> finished = 0;
  std::int64_t other_begin = 0;
  std::int64_t other_end = 0;
  cpu_set_t unpinned;
  pthread_getaffinity_np(pthread_self(), sizeof unpinned, &unpinned);
  pin_to(0);
  std::thread other([&] {
    pin_to(1);
    for (std::uint64_t round = 1;; ++round) {
      std::uint64_t wanted = 0;
      while ((wanted = asked) < round) std::this_thread::yield();
      if (wanted == static_cast<std::uint64_t>(kForever.ns)) return;
      taken = round;
      other_begin = wall_ns();
      probe_hot(throttle, keys, kCalls, 2 * round);
      other_end = wall_ns();
      finished = round;
    }
  });
  std::int64_t one = kForever.ns;
  std::int64_t two = kForever.ns;
  std::uint64_t round = 0;
  for (auto _ : state) {
    ++round;
    std::int64_t begin = wall_ns();
    probe_hot(throttle, keys, kCalls, 2 * round);
    one = std::min(one, wall_ns() - begin);
    asked = round;
    while (taken < round) {
    }
    begin = wall_ns();
    probe_hot(throttle, keys, kCalls, 2 * round + 1);
    const std::int64_t end = wall_ns();
    while (finished < round) {
    }
    two = std::min(two, std::max(end, other_end) - std::min(begin, other_begin));
  }
  asked = static_cast<std::uint64_t>(kForever.ns);
  other.join();
  pthread_setaffinity_np(pthread_self(), sizeof unpinned, &unpinned);
  state.counters["ns_per_key_one"] = static_cast<double>(one) / static_cast<double>(kCalls * kBatch);
  state.counters["speedup"] = 2.0 * static_cast<double>(one) / static_cast<double>(two);
}
BENCHMARK(two_threads<std::mutex>)->Arg(4 << 10)->Arg(256 << 10)->Iterations(2'000);
BENCHMARK(two_threads<SpinLock>)->Arg(4 << 10)->Arg(256 << 10)->Iterations(2'000);

// The slowest call. A neighbour's burst of work also makes a call slow, so each run is made three times with the same
// keys: `worst_over_median` takes a call's least time of the three, `worst_over_median_one_run` the first run alone.

using CallTimes = std::vector<std::int64_t>;  ///< CPU nanoseconds of each 128-key call
constexpr std::uint64_t kEntries = 10'000'000;

/// Calls of 128 new keys from `first` on, while `more` says so.
template <class More>
CallTimes timed_calls(Throttle<std::mutex>& throttle, std::uint64_t first, Time now, More more) {
  CallTimes times;
  std::vector<Reservation> out;
  for (std::uint64_t n = first; more(n); n += kBatch) {
    const std::vector<ObjectKey> keys = keys_of(n, kBatch);
    out.clear();
    const std::int64_t begin = cpu_ns();
    throttle.reserve(keys, now, out);
    times.push_back(cpu_ns() - begin);
  }
  return times;
}

/// Ten million completed entries, all over at once; then new keys until every one of them is taken back.
CallTimes expire(benchmark::State& state) {
  Throttle<std::mutex> throttle({.entries_max = 16 << 20});
  std::vector<Reservation> out;
  std::vector<WaiterId> woken;
  for (std::uint64_t n = 0; n < kEntries; n += kBatch) {
    out.clear();
    throttle.reserve(keys_of(n, kBatch), Time{}, out);
    for (const Reservation& r : out) {
      throttle.mark_in_flight(r.key, r.generation, Time{});
      throttle.mark_completed(r.key, r.generation, Time{}, woken);
    }
  }
  state.counters["bytes_per_entry"] = static_cast<double>(throttle.memory_bytes()) / static_cast<double>(kEntries);
  return timed_calls(throttle, kEntries, Time{} + seconds(31),
                     [&](std::uint64_t) { return throttle.counters().expired_reclaimed < kEntries; });
}

/// From an empty table to ten million entries.
CallTimes grow(benchmark::State&) {
  Throttle<std::mutex> throttle({.entries_max = 16 << 20});
  return timed_calls(throttle, 0, Time{}, [](std::uint64_t n) { return n < kEntries; });
}

double median_of(CallTimes times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle);
}

double worst_of(const CallTimes& times) { return static_cast<double>(*std::max_element(times.begin(), times.end())); }

void slowest_call(benchmark::State& state, CallTimes (*run)(benchmark::State&)) {
  for (auto _ : state) {
    const CallTimes first = run(state);
    CallTimes best = first;
    for (int repeat = 0; repeat < 2; ++repeat) {
      const CallTimes next = run(state);
      for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], next[i]);
    }
    state.counters["calls"] = static_cast<double>(best.size());
    state.counters["median_us"] = median_of(best) / 1e3;
    state.counters["worst_us"] = worst_of(best) / 1e3;
    state.counters["worst_over_median"] = worst_of(best) / median_of(best);
    state.counters["worst_over_median_one_run"] = worst_of(first) / median_of(first);
  }
}
BENCHMARK_CAPTURE(slowest_call, ten_million_expire, expire)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(slowest_call, ten_million_grow, grow)->Iterations(1)->Unit(benchmark::kMillisecond);

/// A small world: made, probed once and thrown away, as the step driver does for each seed.
void tiny_table(benchmark::State& state) {
  const std::vector<ObjectKey> keys = keys_of(0, static_cast<std::size_t>(state.range(0)));
  std::vector<Reservation> out;
  for (auto _ : state) {
    Throttle<> throttle({.entries_max = 64});
    out.clear();
    if (!keys.empty()) throttle.reserve(keys, Time{}, out);
    benchmark::DoNotOptimize(throttle);
  }
}
BENCHMARK(tiny_table)->Arg(0)->Arg(8)->Arg(64);

}  // namespace
}  // namespace kvlift
