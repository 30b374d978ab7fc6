// What core adds to SimGrid: a run of the simulator against two bare programs that issue the very same activities.
//
// The run's effects are recorded by the completion that caused them. `ratio_to_loop` is against a loop that issues
// them again at the same completions through the same driver, with no core behind it. `ratio_to_actors` is against a
// plain S4U program: one actor a node that sleeps, computes and sends, one effect after another. All are timed in
// processes of their own, in turn; seconds depend on the machine.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/world.hpp"
#include "sim/simgrid_driver.hpp"

namespace kvlift::sim {
namespace {

/// Requests of 10 to 60 blocks that share prefixes, at three a second, on a store whose DRAM holds a part of them.
RunPlan plan(std::uint64_t requests) {
  RunPlan p;
  HostSettings host;
  host.count = 2;
  host.nodes = 2;
  host.segment_bytes = mebibytes(8'192);
  p.platform.hosts = {host};
  p.policy = *policy_preset("rfc-4271");
  p.store.client.ssd_get_wait = milliseconds(2'000);
  p.engine.engines = 4;
  p.engine.ranks_share_keys = false;
  p.engine.bytes_per_token = {8'192};
  Phase replay;
  replay.name = "replay";
  replay.kind = Phase::Kind::open_loop;
  p.workload.phases.push_back(replay);
  p.workload.source = [n = std::uint64_t{0}, requests, random = Random(7)](Request& r) mutable {
    if (n == requests) return false;
    const std::uint64_t family = random.below(64);
    const std::uint64_t blocks = 10 + random.below(50);
    r = {};
    r.arrival = Time{static_cast<std::int64_t>(n * 300'000'000)};
    r.input = {static_cast<std::int64_t>(blocks * 512 + 100)};
    r.output = {static_cast<std::int64_t>(1 + random.below(200))};
    for (std::uint64_t b = 0; b < blocks; ++b)
      r.block_ids.push_back(b < 20 ? family * 1'000 + b : (n + 100) * 1'000 + b);
    ++n;
    return true;
  };
  return p;
}

using Batches = std::vector<Effects>;  ///< by completion; the first is what the start issued

Batches record(const RunPlan& p) {
  Batches batches;
  World world(p);
  SimGridDriver* driver = nullptr;
  Time last;
  SimGridDriver simgrid(p.platform, [&](const Completion& c, Time now) {
    if (world.done()) return driver->stop();
    last = std::max(last, now);
    world.on(c, last);
    batches.push_back(world.effects());
    driver->take(world.effects());
  });
  driver = &simgrid;
  world.start(simgrid.now());
  batches.push_back(world.effects());  // nothing has completed yet
  simgrid.take(world.effects());
  simgrid.run();
  return batches;
}

void bare(const RunPlan& p, Batches& batches) {
  std::size_t next = 0;
  SimGridDriver* driver = nullptr;
  SimGridDriver simgrid(p.platform, [&](const Completion&, Time) {
    if (++next < batches.size()) return driver->take(batches[next]);
    driver->stop();
  });
  driver = &simgrid;
  simgrid.take(batches[0]);
  simgrid.run();
}

/// The same activities as an S4U program of the usual kind.
void actors(const RunPlan& p, const Batches& batches) {
  namespace sg4 = simgrid::s4u;
  std::vector<std::vector<const Effect*>> of_node;
  for (const Effects& batch : batches) {
    for (const Effect& e : batch) {
      const std::size_t node = e.node < kMasterNode ? index(e.node) : 0;
      if (node >= of_node.size()) of_node.resize(node + 1);
      of_node[node].push_back(&e);
    }
  }
  std::string name = "bare";
  std::string quiet = "--log=root.threshold:warning";
  std::vector<char*> words{name.data(), quiet.data(), nullptr};
  int count = 2;
  sg4::Engine engine(&count, words.data());
  auto* zone = sg4::create_star_zone("zone");
  std::vector<sg4::Host*> hosts;
  for (std::size_t n = 0; n < of_node.size(); ++n) {
    hosts.push_back(zone->create_host("host" + std::to_string(n), p.platform.hosts[0].ssd.read_bandwidth));
    const sg4::LinkInRoute link(
        zone->create_link("link" + std::to_string(n), p.platform.hosts[0].nic_bandwidth)->seal());
    zone->add_route(hosts[n]->get_netpoint(), nullptr, nullptr, nullptr, std::vector{link}, true);
    hosts[n]->seal();
  }
  zone->seal();
  for (std::size_t n = 0; n < of_node.size(); ++n) {
    sg4::Actor::create("node", hosts[n], [&hosts, &mine = of_node[n], n] {
      for (const Effect* e : mine) {
        if (e->kind == EffectKind::disk_read || e->kind == EffectKind::disk_write) {
          sg4::this_actor::execute(static_cast<double>(e->bytes.value));
        } else if (e->kind == EffectKind::transfer && index(e->peer) < hosts.size() && index(e->peer) != n) {
          sg4::Comm::sendto(hosts[n], hosts[index(e->peer)], static_cast<std::uint64_t>(e->bytes.value));
        } else if (e->kind == EffectKind::transfer) {
          sg4::this_actor::execute(static_cast<double>(e->bytes.value));
        } else {
          sg4::this_actor::sleep_for(1e-4);
        }
      }
    });
  }
  engine.run();
}

/// Runs `work` in a child process, since SimGrid allows one engine to a process, and waits for it.
template <class Work>
void in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::abort();
}

/// CPU seconds of `work` in a child.
template <class Work>
double seconds_in_child(Work work) {
  std::FILE* file = std::tmpfile();
  in_child([&] {
    const std::clock_t began = std::clock();
    work();
    const double took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    if (std::fwrite(&took, sizeof took, 1, file) != 1) std::abort();
  });
  std::rewind(file);
  double took = 0;
  if (std::fread(&took, sizeof took, 1, file) != 1) std::abort();
  std::fclose(file);
  return took;
}

/// The batches that record() makes, from a child.
Batches recorded(const RunPlan& p) {
  std::FILE* file = std::tmpfile();
  in_child([&] {
    for (const Effects& batch : record(p)) {
      const std::size_t count = batch.size();
      if (std::fwrite(&count, sizeof count, 1, file) != 1) std::abort();
      if (std::fwrite(batch.data(), sizeof(Effect), count, file) != count) std::abort();
    }
  });
  std::rewind(file);
  Batches batches;
  for (std::size_t count = 0; std::fread(&count, sizeof count, 1, file) == 1;) {
    Effects& batch = batches.emplace_back(count);
    if (std::fread(batch.data(), sizeof(Effect), count, file) != count) std::abort();
  }
  std::fclose(file);
  return batches;
}

void Simulator(benchmark::State& state) {
  const RunPlan p = plan(static_cast<std::uint64_t>(state.range(0)));
  Batches batches = recorded(p);
  std::size_t effects = 0;
  for (const Effects& b : batches) effects += b.size();
  double whole = 0;
  double alone = 0;
  double usual = 0;
  for (auto _ : state) {
    whole += seconds_in_child([&] { (void)run(p); });
    alone += seconds_in_child([&] { bare(p, batches); });
    usual += seconds_in_child([&] { actors(p, batches); });
  }
  state.counters["effects"] = static_cast<double>(effects);
  state.counters["ratio_to_loop"] = whole / alone;
  state.counters["ratio_to_actors"] = whole / usual;
  state.counters["us_per_effect"] =
      whole / static_cast<double>(state.iterations()) / static_cast<double>(effects) * 1e6;
}
BENCHMARK(Simulator)->Arg(2'000)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvlift::sim

BENCHMARK_MAIN();
