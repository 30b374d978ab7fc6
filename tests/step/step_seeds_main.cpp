// Many seeds in parallel: prints what was met, fails on the first violation and names its seed.
//
//   kvlift_step_seeds --seeds 100000 --events 1000 --jobs 2 [--first 1]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/step/seed_world.hpp"

namespace {

using kvlift::step::SeedReport;

struct Sum {
  SeedReport total;
  std::uint64_t hash = 0;
  std::string violation;
};

void add(Sum& sum, const SeedReport& r) {
  sum.total.events += r.events;
  sum.hash += r.hash;  // a sum does not depend on the order in which threads finish
  for (std::size_t i = 0; i < r.faults.size(); ++i) sum.total.faults[i] += r.faults[i];
  for (std::size_t i = 0; i < r.process_faults.size(); ++i) sum.total.process_faults[i] += r.process_faults[i];
  sum.total.promotions_completed += r.promotions_completed;
  sum.total.promotions_failed += r.promotions_failed;
  sum.total.promotions_skipped += r.promotions_skipped;
  sum.total.gets_ok += r.gets_ok;
  sum.total.gets_failed += r.gets_failed;
  sum.total.evictions += r.evictions;
  sum.total.offloads += r.offloads;
  sum.total.cooldowns += r.cooldowns;
}

std::uint64_t argument(int argc, char** argv, const char* name, std::uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seeds = argument(argc, argv, "--seeds", 1000);
  const std::uint64_t events = argument(argc, argv, "--events", 1000);
  const std::uint64_t first = argument(argc, argv, "--first", 1);
  const std::uint64_t jobs =
      std::max<std::uint64_t>(1, argument(argc, argv, "--jobs", std::thread::hardware_concurrency()));
  const auto began = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next{first};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Sum sum;
  std::vector<std::thread> threads;
  for (std::uint64_t j = 0; j < jobs; ++j) {
    threads.emplace_back([&] {
      Sum mine;
      for (std::uint64_t seed = next++; seed < first + seeds && !stop; seed = next++) {
        const SeedReport r = kvlift::step::run_seed(seed, events);
        add(mine, r);
        if (r.violation.empty()) continue;
        mine.violation = "seed " + std::to_string(seed) + ": " + r.violation;
        stop = true;
      }
      const std::lock_guard lock(mutex);
      add(sum, mine.total);
      sum.hash += mine.hash;
      if (!mine.violation.empty()) sum.violation = mine.violation;
    });
  }
  for (std::thread& t : threads) t.join();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const SeedReport& t = sum.total;
  std::printf("%llu seeds, %llu events in %.1f s, hash %016llx\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(t.events), took, static_cast<unsigned long long>(sum.hash));
  int missing = 0;
  const auto line = [&](std::string_view name, std::uint64_t count) {
    std::printf("  %-24.*s %llu\n", static_cast<int>(name.size()), name.data(), static_cast<unsigned long long>(count));
    if (count == 0) ++missing;
  };
  for (std::size_t i = 0; i < t.faults.size(); ++i)
    line(kvlift::step::to_string(static_cast<kvlift::step::Fault>(i)), t.faults[i]);
  const char* const process_faults[] = {"node_crash", "node_restart", "master_restart_snapshot",
                                        "master_restart_empty"};
  for (std::size_t i = 0; i < t.process_faults.size(); ++i) line(process_faults[i], t.process_faults[i]);
  line("promotions_completed", t.promotions_completed);
  line("promotions_failed", t.promotions_failed);
  line("promotions_skipped", t.promotions_skipped);
  line("keys read", t.gets_ok);
  line("keys failed or missed", t.gets_failed);
  line("evictions", t.evictions);
  line("offload buckets", t.offloads);
  line("cooldowns", t.cooldowns);
  if (!sum.violation.empty()) {
    std::printf("VIOLATION %s\n", sum.violation.c_str());
    return 1;
  }
  if (missing > 0) {
    std::printf("%d kinds were never met: too few seeds, or a fault that nothing can reach\n", missing);
    return 1;
  }
  std::printf("no violation\n");
  return 0;
}
