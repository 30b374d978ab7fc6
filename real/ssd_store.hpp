// The objects that one node keeps on its SSD: append-only segments, an index in memory, checksums at every read.
//
//   write: claim room at the tail -> header and payload at once -> fdatasync -> in the index   (answered as stored)
//   read:  header and payload in one request -> key, version, place and checksum must match
//   forget: out of the index at once -> header rewritten, or the whole segment removed when nothing in it is left
//
// Guarantees:
// - A write that was answered OK is found again after a crash of the process or the machine (with `sync`).
// - A read gives the bytes of that key and version or an error; a damaged object is CHECKSUM_MISMATCH.
// - What a full disk costs is the write that found it full.
//
// Opening scans what is there: records that are damaged or torn are dropped; of one key the highest version stays.
// Belongs to the ring's thread. Several stores share a ring: each answers only to tokens with its own `owner`.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/slots.hpp"
#include "real/arena.hpp"
#include "real/record.hpp"
#include "real/ring.hpp"
#include "real/ssd_folder.hpp"

namespace kvlift::real {

struct SsdStoreSettings {
  std::uint64_t segment_bytes = 256ULL << 20;
  std::uint64_t quota_bytes = ~0ULL;  ///< of segment files; a write beyond it is KEYS_ULTRA_LIMIT
  bool sync = true;                   ///< a write is answered when the device has it for good
  std::uint32_t writes_max = 256;     ///< records being written or forgotten at a time; the rest waits
};

/// An object in a write or a read. The memory is `bytes` rounded up to 4 KiB long, at a multiple of 4 KiB; of a read
/// it begins one page earlier: the record's header lands in [data - 4 KiB, data).
struct SsdItem {
  ObjectKey key;
  std::uint64_t version = 0;
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

struct SsdDone {
  std::uint64_t token = 0;
  std::vector<std::pair<std::uint32_t, Error>> failed = {};  ///< items, ascending; the others are whole
};

struct SsdCounters {
  std::uint64_t recovered = 0;   ///< objects found when opened
  std::uint64_t dropped = 0;     ///< records found damaged, torn or outdated when opened
  std::uint64_t mismatches = 0;  ///< reads that did not give what was asked for
  std::uint64_t segments_removed = 0;
  std::uint64_t bytes_written = 0, bytes_read = 0;  ///< of payload
};

class SsdStore {
 public:
  /// Throws RealError when the folder cannot be read.
  SsdStore(SsdFolder folder, Ring& ring, std::uint16_t owner, const SsdStoreSettings& settings);
  ~SsdStore();
  SsdStore(const SsdStore&) = delete;
  SsdStore& operator=(const SsdStore&) = delete;

  /// Answered once with the token, from a later on() or poll().
  void write(std::uint64_t token, std::span<const SsdItem> items);
  /// Unknown objects fail with INVALID_KEY, other lengths than stored with INVALID_PARAMS.
  void read(std::uint64_t token, std::span<const SsdItem> items, bool background);
  /// Nothing is answered; reads and writes of the object that are under way end as they would have.
  void forget(const ObjectKey& key, std::uint64_t version);

  bool mine(const RingDone& done) const { return done.token >> 48 == owner_; }
  /// For each answer of the ring that is mine().
  void on(const RingDone& done, std::vector<SsdDone>& finished);
  /// Hands to the ring what it had no room for; appends what has failed at once. Before waiting for the ring.
  void poll(std::vector<SsdDone>& finished);
  /// Nothing is under way, forgetting included.
  bool quiet() const { return parts_.live() == 0 && at_once_.empty(); }

  struct Object {
    ObjectKey key;
    std::uint64_t version = 0;
    std::uint64_t bytes = 0;
  };
  /// All that is kept, by key and version.
  std::vector<Object> objects() const;
  std::uint64_t bytes_on_disk() const { return bytes_on_disk_; }
  const SsdCounters& counters() const { return counters_; }

 private:
  struct Segment {
    int fd = -1;
    std::int32_t file = -1;  ///< of the ring
    std::uint64_t capacity = 0, tail = 0;
    std::uint32_t kept = 0;  ///< objects in the index or being written
    std::uint32_t busy = 0;  ///< parts under way or waiting
    bool gone = false;       ///< no file any more; closed when not busy
  };
  struct Name {
    ObjectKey key;
    std::uint64_t version = 0;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& n) const { return static_cast<std::size_t>(mix64(hash_of(n.key) + n.version)); }
  };
  struct Where {
    std::uint64_t segment = 0, offset = 0, bytes = 0;
    std::uint32_t crc = 0;  ///< of the payload
  };
  struct Item {
    SsdItem what;
    Where where = {};
    Error error = Error::OK;
    bool forgotten = false;  ///< while it was being written
  };
  struct Batch {
    bool live = false;
    std::uint64_t token = 0;
    std::uint32_t parts = 0;  ///< under way or waiting
    bool writes = false, syncing = false;
    std::vector<Item> items = {};
  };
  enum class Role : std::uint8_t { read, header, payload, sync, tombstone };
  /// One request of the ring.
  struct Part {
    bool live = false;
    Role role = Role::read;
    std::uint32_t batch = kNone, item = 0;
    std::uint64_t segment = 0;
    RecordHeader header = {};   ///< of a header or tombstone
    std::byte* page = nullptr;  ///< of the pool, from its start on
    RingRequest request = {};
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  void recover();
  void recover_segment(std::uint64_t number, std::unordered_map<ObjectKey, std::uint64_t, ObjectKeyHash>& newest);
  Error claim(std::uint64_t bytes, Where& where);
  Error open_segment(std::uint64_t bytes);
  void leave_tail();
  void add(Part part);
  bool start(std::uint32_t part);
  void begin_write(std::uint32_t batch, std::uint32_t item);
  Error checked(const Item& item) const;
  void part_over(std::uint32_t batch, std::vector<SsdDone>& finished);
  void begin_syncs(std::uint32_t batch);
  void finish(std::uint32_t batch, std::vector<SsdDone>& finished);
  /// What stands there is not kept: marked so on SSD, or gone with its segment.
  void drop(const Name& name, const Where& where);
  void remove_if_empty(std::uint64_t number);
  void close_if_idle(std::uint64_t number);
  static RecordHeader header_of(const Name& name, const Where& where);

  SsdFolder folder_;
  Ring& ring_;
  std::uint64_t owner_;
  SsdStoreSettings settings_;
  std::unordered_map<Name, Where, NameHash> index_;
  std::unordered_map<std::uint64_t, Segment> segments_;
  std::uint64_t tail_ = 0;  ///< segment that is appended to; 0: none
  std::uint64_t next_segment_ = 1;
  std::uint64_t bytes_on_disk_ = 0;
  Arena pool_;  ///< header pages
  std::vector<std::byte*> pages_;
  Slots<Batch> batches_;
  Slots<Part> parts_;
  std::deque<std::uint32_t> waiting_;   ///< parts that the ring or the pool had no room for
  std::vector<std::uint32_t> at_once_;  ///< batches that were over before a part began
  SsdCounters counters_;
};

}  // namespace kvlift::real
