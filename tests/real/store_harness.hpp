// A store on a folder of its own, driven until it has answered; and payloads that are known by their key.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "real/arena.hpp"
#include "real/open_ring.hpp"
#include "real/run_folder.hpp"
#include "real/ssd_stores.hpp"

namespace kvlift::real {

/// A new empty folder, removed with everything in it.
class TemporaryFolder : public RunFolder {
 public:
  TemporaryFolder() : RunFolder(::testing::TempDir()) {}
  std::vector<std::string> segments() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().filename() != "owner") list.push_back(entry.path().string());
    }
    std::sort(list.begin(), list.end());
    return list;
  }
};

inline ObjectKey key(std::uint64_t n) { return {.key = {n, n * 7 + 1}}; }

class StoreUnderTest {
 public:
  explicit StoreUnderTest(const std::string& folder, const SsdStoreSettings& settings = {.segment_bytes = 1U << 20})
      : ring_(open_ring({}, 256, {})), arena_(64U << 20), stores_(*ring_), store_(stores_.open(folder, settings)) {}

  /// An item in memory of its own, as long as the harness lives.
  SsdItem item(std::uint64_t n, std::uint64_t version, std::uint64_t bytes) {
    const SsdItem made{key(n), version, arena_.data() + used_ + kPage, bytes};
    used_ += record_bytes(bytes);
    EXPECT_LE(used_, arena_.bytes());
    return made;
  }
  static void fill(const SsdItem& item) {
    for (std::uint64_t i = 0; i < item.bytes; ++i) item.data[i] = byte_of(item, i);
  }
  static bool filled(const SsdItem& item) {
    for (std::uint64_t i = 0; i < item.bytes; ++i) {
      if (item.data[i] != byte_of(item, i)) return false;
    }
    return true;
  }

  SsdDone write(const std::vector<SsdItem>& items) {
    for (const SsdItem& i : items) fill(i);
    store_.write(++token_, items);
    return wait();
  }
  Error write(std::uint64_t n, std::uint64_t version, std::uint64_t bytes) {
    return only(write({item(n, version, bytes)}));
  }
  /// The answer, and whether the bytes are those that were written.
  std::pair<Error, bool> read(std::uint64_t n, std::uint64_t version, std::uint64_t bytes) {
    const SsdItem into = item(n, version, bytes);
    store_.read(++token_, std::vector{into}, false);
    const Error error = only(wait());
    return {error, filled(into)};
  }
  SsdDone wait() { return wait_for(token_); }
  SsdDone wait_for(std::uint64_t token) {
    std::vector<SsdDone> finished;
    while (finished.empty()) step(finished);
    EXPECT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0].token, token);
    return finished[0];
  }
  void settle() {
    std::vector<SsdDone> finished;
    while (!store_.quiet()) step(finished);
    EXPECT_TRUE(finished.empty());
  }
  SsdStore& store() { return store_; }

 private:
  static std::byte byte_of(const SsdItem& item, std::uint64_t i) {
    return static_cast<std::byte>(item.key.key.high * 31 + item.version * 17 + i + (i >> 8));
  }
  static Error only(const SsdDone& done) { return done.failed.empty() ? Error::OK : done.failed[0].second; }
  void step(std::vector<SsdDone>& finished) {
    std::vector<SsdStores::Finished> now;
    ring_->quiet();
    stores_.poll(Time{}, now);
    for (SsdStores::Finished& f : now) finished.push_back(std::move(f.done));
    pollfd wait{.fd = ring_->ready_fd(), .events = POLLIN, .revents = 0};
    if (now.empty()) ::poll(&wait, 1, 1000);
  }

  std::unique_ptr<Ring> ring_;
  Arena arena_;
  std::uint64_t used_ = 0;
  SsdStores stores_;
  SsdStore& store_;
  std::uint64_t token_ = 0;
};

}  // namespace kvlift::real
