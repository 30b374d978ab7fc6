#include "real/calibrate.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>

#include "real/arena.hpp"
#include "real/error.hpp"
#include "real/local_link.hpp"
#include "real/open_ring.hpp"
#include "real/payload.hpp"
#include "real/run_folder.hpp"
#include "real/ssd_stores.hpp"

namespace kvlift::real {
namespace {

constexpr std::uint32_t kBatch = 16;
constexpr std::uint64_t kSmall = kPage;
constexpr std::size_t kNodes = 2;
/// Objects that a measurement may have in memory at a time, on each node.
constexpr std::uint32_t kPlaces = 64;

double seconds_of(Duration span) { return static_cast<double>(span.ns) / 1e9; }

Duration median_of(std::vector<Duration> spans) {
  std::sort(spans.begin(), spans.end());
  return spans[spans.size() / 2];
}

std::vector<Duration> measure(int rounds, const std::function<void()>& work) {
  std::vector<Duration> spans;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    spans.push_back({std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count()});
  }
  return spans;
}

class Bench {
 public:
  explicit Bench(const CalibrationSettings& settings)
      : folder_(settings.folder), place_bytes_(record_bytes(settings.object_bytes)) {
    arena_ = std::make_unique<Arena>(2 * kNodes * kPlaces * place_bytes_);
    ring_ = open_ring({}, 512, [this](const std::string& line) { steps_.push_back(line); });
    const Memory memory = arena_->memory();
    ring_->register_memory({&memory, 1});
    stores_ = std::make_unique<SsdStores>(*ring_);
    for (std::size_t n = 0; n < kNodes; ++n)
      stores_->open(folder_.path() + "/node-" + std::to_string(n),
                    {.segment_bytes = kBatch * place_bytes_, .sync = settings.sync});
    link_ = std::make_unique<LocalLink>(memory, memory);
  }

  /// Writes a bucket of new objects on one node; their names begin at `first` of the size's own.
  void write(std::size_t node, std::uint64_t bytes, std::uint64_t first, std::uint32_t objects) {
    const std::vector<SsdItem> batch = items(node, bytes, first, objects);
    for (const SsdItem& item : batch) mark(item.key, item.data, item.bytes);
    (*stores_)[node].write(++token_, batch);
    wait(1);
  }
  /// Reads a batch on each of the first `nodes` nodes at a time.
  void read(std::size_t nodes, std::uint64_t bytes, std::uint64_t first, std::uint32_t objects) {
    for (std::size_t n = 0; n < nodes; ++n) (*stores_)[n].read(++token_, items(n, bytes, first, objects), false);
    wait(nodes);
    for (std::size_t n = 0; n < nodes; ++n) {
      for (const SsdItem& item : items(n, bytes, first, objects)) {
        if (!marked(item.key, item.data, item.bytes, ~0U)) throw RealError("an object came back with other bytes");
      }
    }
  }
  /// Sends `objects` through the link, and waits for all.
  void copy(std::uint64_t bytes, std::uint32_t objects) {
    for (std::uint32_t i = 0; i < objects; ++i) {
      const Transfer transfer{
          .token = i, .local = i * place_bytes_, .remote = (kPlaces + i) * place_bytes_, .bytes = bytes};
      if (!link_->post(transfer)) throw RealError("the link takes no more transfers");
    }
    std::vector<TransferDone> done;
    while (done.size() < objects) {
      sleep(link_->ready_fd());
      link_->poll(done);
    }
  }

  std::vector<std::pair<std::string, std::string>> describe() const {
    std::vector<std::pair<std::string, std::string>> lines{
        {"ssd engine", ring_->describe()}, {"memory", arena_->describe()}, {"link", link_->describe()}};
    for (const std::string& step : steps_) lines.emplace_back("stepped down", step);
    return lines;
  }

 private:
  std::vector<SsdItem> items(std::size_t node, std::uint64_t bytes, std::uint64_t first, std::uint32_t objects) {
    std::vector<SsdItem> list;
    for (std::uint32_t i = 0; i < objects; ++i) {
      const ObjectKey key{.key = {bytes, first + i}};
      list.push_back({key, 1, arena_->data() + (node * kPlaces + i) * place_bytes_ + kPage, bytes});
    }
    return list;
  }
  void wait(std::size_t batches) {
    std::vector<SsdStores::Finished> finished;
    for (;;) {
      ring_->quiet();
      stores_->poll(Time{}, finished);
      for (const SsdStores::Finished& f : finished) {
        if (!f.done.failed.empty()) throw RealError("an object could not be written or read: is the SSD full?");
      }
      if (finished.size() == batches) return;
      sleep(ring_->ready_fd());
    }
  }
  static void sleep(int fd) {
    pollfd source{.fd = fd, .events = POLLIN, .revents = 0};
    ::poll(&source, 1, 1000);
  }

  RunFolder folder_;
  std::uint64_t place_bytes_;
  std::vector<std::string> steps_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<SsdStores> stores_;
  std::unique_ptr<LocalLink> link_;
  std::uint64_t token_ = 0;
};

}  // namespace

Calibration calibrate(const CalibrationSettings& settings) {
  Bench bench(settings);
  Calibration result;
  const auto buckets = static_cast<std::uint32_t>(settings.total_bytes / (kBatch * settings.object_bytes)) + 1;
  const double bucket_bytes = static_cast<double>(kBatch) * static_cast<double>(settings.object_bytes);
  const auto bandwidth = [](double bytes, Duration span) { return bytes / seconds_of(span); };

  // Everything is written before anything is read: what is read should not lie in a cache of the device.
  std::vector<Duration> writes;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    for (std::size_t n = 0; n < kNodes; ++n) {
      const auto span = measure(1, [&] { bench.write(n, settings.object_bytes, b * kBatch, kBatch); });
      writes.push_back(span.front());
    }
  }
  result.write_bandwidth = bandwidth(bucket_bytes, median_of(writes));
  std::uint64_t next_small = 0;
  const auto one_small = [&] { bench.write(0, kSmall, next_small++, 1); };
  result.write_request = median_of(measure(std::max(settings.rounds, static_cast<int>(kPlaces)), one_small));

  std::vector<std::uint64_t> sizes{kSmall, 128U << 10, 1U << 20, settings.object_bytes};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase_if(sizes, [&](std::uint64_t bytes) { return bytes > settings.object_bytes; });
  for (const std::uint64_t bytes : sizes) {
    if (bytes != kSmall && bytes != settings.object_bytes) bench.write(0, bytes, 0, kPlaces);
  }
  for (const std::uint64_t bytes : sizes) {
    for (const std::uint32_t objects : {1U, 4U, kBatch, kPlaces}) {
      std::uint64_t turn = 0;
      const std::uint64_t there = bytes == settings.object_bytes ? std::uint64_t{buckets} * kBatch : kPlaces;
      const auto read = [&] { bench.read(1, bytes, turn++ * objects % (there - objects + 1), objects); };
      std::vector<Duration> spans = measure(settings.rounds, read);
      std::sort(spans.begin(), spans.end());
      ReadPoint point{.bytes = bytes, .objects = objects, .median = median_of(spans)};
      point.bandwidth = bandwidth(static_cast<double>(bytes) * objects, point.median);
      point.spread = seconds_of(spans.back() - spans.front()) / seconds_of(point.median);
      result.reads.push_back(point);
      if (bytes == settings.object_bytes && objects == kBatch) result.stream_bandwidth = point.bandwidth;
      if (bytes == kSmall && objects == kBatch) result.read_request = {point.median.ns / kBatch};
    }
  }
  std::uint32_t turn = 0;
  const auto both = [&] { bench.read(kNodes, settings.object_bytes, turn++ % buckets * kBatch, kBatch); };
  result.read_bandwidth = bandwidth(kNodes * bucket_bytes, median_of(measure(settings.rounds, both)));
  // One stream is a part of the device: what it reached alone the device can give.
  result.read_bandwidth = std::max(result.read_bandwidth, result.stream_bandwidth);

  constexpr std::uint32_t kCopies = 8;
  const auto copies = [&] { bench.copy(settings.object_bytes, kCopies); };
  bench.copy(settings.object_bytes, kPlaces);  // the pages are there
  result.copy_bandwidth =
      bandwidth(kCopies * static_cast<double>(settings.object_bytes), median_of(measure(settings.rounds, copies)));
  result.copy_request = median_of(measure(settings.rounds * 10, [&] { bench.copy(kSmall, 1); }));

  constexpr timespec kWait{.tv_sec = 0, .tv_nsec = 5'000'000};
  const auto nothing = [&] { ppoll(nullptr, 0, &kWait, nullptr); };
  result.oversleep = median_of(measure(settings.rounds * 2, nothing)) - Duration{kWait.tv_nsec};
  result.performed_by = bench.describe();
  return result;
}

}  // namespace kvlift::real
