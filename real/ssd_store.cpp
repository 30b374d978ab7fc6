#include "real/ssd_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/assert.hpp"
#include "real/crc32c.hpp"
#include "real/error.hpp"
#include "real/io_error.hpp"

namespace kvlift::real {

SsdStore::SsdStore(SsdFolder folder, Ring& ring, std::uint16_t owner, const SsdStoreSettings& settings)
    : folder_(std::move(folder)),
      ring_(ring),
      owner_(owner),
      settings_(settings),
      pool_(std::size_t{settings.writes_max} * kPage) {
  for (std::uint32_t i = 0; i < settings_.writes_max; ++i) pages_.push_back(pool_.data() + i * kPage);
  recover();
}

SsdStore::~SsdStore() {
  std::vector<RingDone> done;
  std::vector<SsdDone> nobody;
  while (!quiet()) {
    poll(nobody);
    ring_.drain(kLongAgo, done);
    for (const RingDone& d : done) {
      if (mine(d)) on(d, nobody);
    }
    done.clear();
  }
  for (auto& [number, segment] : segments_) {
    ring_.detach(segment.file);
    ::close(segment.fd);
  }
}

RecordHeader SsdStore::header_of(const Name& name, const Where& where) {
  return {.key = name.key,
          .version = name.version,
          .bytes = where.bytes,
          .payload_crc = where.crc,
          .segment = where.segment,
          .offset = where.offset};
}

std::vector<SsdStore::Object> SsdStore::objects() const {
  std::vector<Object> list;
  for (const auto& [name, where] : index_) list.push_back({name.key, name.version, where.bytes});
  std::sort(list.begin(), list.end(),
            [](const Object& a, const Object& b) { return std::pair(a.key, a.version) < std::pair(b.key, b.version); });
  return list;
}

// --- room ---

void SsdStore::close_if_idle(std::uint64_t number) {
  const auto at = segments_.find(number);
  if (at == segments_.end() || !at->second.gone || at->second.busy > 0) return;
  ring_.detach(at->second.file);
  ::close(at->second.fd);
  segments_.erase(at);
}

void SsdStore::remove_if_empty(std::uint64_t number) {
  Segment& segment = segments_.at(number);
  if (segment.kept > 0 || number == tail_ || segment.gone) return;
  if (!folder_.remove(number)) return;  // it stays, and is tried again when the folder is opened next
  segment.gone = true;
  bytes_on_disk_ -= segment.capacity;
  ++counters_.segments_removed;
  close_if_idle(number);
}

void SsdStore::leave_tail() {
  const std::uint64_t left = std::exchange(tail_, 0);
  if (left != 0) remove_if_empty(left);
}

Error SsdStore::open_segment(std::uint64_t bytes) {
  const std::uint64_t capacity = std::max(settings_.segment_bytes, bytes);
  if (capacity > settings_.quota_bytes || bytes_on_disk_ > settings_.quota_bytes - capacity)
    return Error::KEYS_ULTRA_LIMIT;
  bool direct = false;
  const int fd = folder_.create(next_segment_, capacity, direct);
  if (fd < 0) return io_cause(-fd).answer == IoAnswer::no_room ? Error::FILE_WRITE_FAIL : Error::FILE_OPEN_FAIL;
  const int file = ring_.attach(fd, direct);
  if (file < 0) {
    ::close(fd);
    folder_.remove(next_segment_);
    return Error::FILE_OPEN_FAIL;
  }
  leave_tail();
  tail_ = next_segment_++;
  segments_[tail_] = {.fd = fd, .file = file, .capacity = capacity};
  bytes_on_disk_ += capacity;
  return Error::OK;
}

Error SsdStore::claim(std::uint64_t bytes, Where& where) {
  const std::uint64_t needed = record_bytes(bytes);
  if (tail_ == 0 || segments_[tail_].capacity - segments_[tail_].tail < needed) {
    if (const Error error = open_segment(needed); error != Error::OK) return error;
  }
  Segment& segment = segments_[tail_];
  where = {.segment = tail_, .offset = segment.tail, .bytes = bytes};
  segment.tail += needed;
  ++segment.kept;
  return Error::OK;
}

void SsdStore::drop(const Name& name, const Where& where) {
  --segments_.at(where.segment).kept;
  remove_if_empty(where.segment);
  const auto at = segments_.find(where.segment);
  if (at == segments_.end() || at->second.gone) return;
  Part part{.role = Role::tombstone, .segment = where.segment, .header = header_of(name, where)};
  part.header.forgotten = true;
  part.request = {.kind = RingRequest::Kind::write, .background = true, .bytes = kPage, .offset = where.offset};
  add(part);
}

// --- requests ---

void SsdStore::add(Part part) {
  Segment& segment = segments_.at(part.segment);
  ++segment.busy;
  if (part.batch != kNone) ++batches_[part.batch].parts;
  const std::uint32_t slot = parts_.acquire();
  part.request.token = owner_ << 48 | slot;
  part.request.file = segment.file;
  part.live = true;
  parts_[slot] = part;
  if (!waiting_.empty() || !start(slot)) waiting_.push_back(slot);
}

bool SsdStore::start(std::uint32_t slot) {
  Part& part = parts_[slot];
  if (part.role == Role::header || part.role == Role::tombstone) {
    if (part.page == nullptr) {
      if (pages_.empty()) return false;
      part.page = pages_.back();
      pages_.pop_back();
      encode(part.header, part.page);
    }
    part.request.data = part.page;
  }
  return ring_.start(part.request);
}

void SsdStore::begin_write(std::uint32_t b, std::uint32_t i) {
  Item& item = batches_[b].items[i];
  item.error = claim(item.what.bytes, item.where);
  if (item.error != Error::OK) return;
  item.where.crc = crc32c(item.what.data, item.what.bytes);
  Part part{.role = Role::header, .batch = b, .item = i, .segment = item.where.segment};
  part.header = header_of({item.what.key, item.what.version}, item.where);
  part.request = {.kind = RingRequest::Kind::write, .bytes = kPage, .offset = item.where.offset};
  add(part);
  part.role = Role::payload;
  part.request.data = item.what.data;
  part.request.bytes = record_bytes(item.what.bytes) - kPage;
  part.request.offset += kPage;
  add(part);
}

void SsdStore::write(std::uint64_t token, std::span<const SsdItem> items) {
  const std::uint32_t b = batches_.acquire();
  batches_[b] = {.live = true, .token = token, .writes = true};
  for (const SsdItem& item : items) batches_[b].items.push_back({.what = item});
  for (std::uint32_t i = 0; i < items.size(); ++i) begin_write(b, i);
  if (batches_[b].parts == 0) at_once_.push_back(b);
}

void SsdStore::read(std::uint64_t token, std::span<const SsdItem> items, bool background) {
  const std::uint32_t b = batches_.acquire();
  batches_[b] = {.live = true, .token = token};
  for (const SsdItem& what : items) {
    Item item{.what = what};
    const auto found = index_.find({what.key, what.version});
    if (found == index_.end()) {
      item.error = Error::INVALID_KEY;
    } else if (found->second.bytes != what.bytes) {
      item.error = Error::INVALID_PARAMS;
    } else {
      item.where = found->second;
    }
    batches_[b].items.push_back(item);
  }
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const Item& item = batches_[b].items[i];
    if (item.error != Error::OK) continue;
    Part part{.role = Role::read, .batch = b, .item = i, .segment = item.where.segment};
    part.request = {.kind = RingRequest::Kind::read,
                    .background = background,
                    .data = item.what.data - kPage,
                    .bytes = record_bytes(item.what.bytes),
                    .offset = item.where.offset};
    add(part);
  }
  if (batches_[b].parts == 0) at_once_.push_back(b);
}

void SsdStore::forget(const ObjectKey& key, std::uint64_t version) {
  const Name name{key, version};
  if (const auto found = index_.find(name); found != index_.end()) {
    const Where where = found->second;
    index_.erase(found);
    drop(name, where);
    return;
  }
  for (std::uint32_t b = 0; b < batches_.size(); ++b) {
    if (!batches_[b].live || !batches_[b].writes) continue;
    for (Item& item : batches_[b].items) {
      if (item.what.key == key && item.what.version == version) item.forgotten = true;
    }
  }
}

// --- answers ---

Error SsdStore::checked(const Item& item) const {
  const auto header = decode(item.what.data - kPage);
  if (!header) return Error::CHECKSUM_MISMATCH;
  RecordHeader expected = header_of({item.what.key, item.what.version}, item.where);
  expected.forgotten = header->forgotten;  // meanwhile; its bytes are still there
  if (*header != expected) return Error::CHECKSUM_MISMATCH;
  return crc32c(item.what.data, item.what.bytes) == item.where.crc ? Error::OK : Error::CHECKSUM_MISMATCH;
}

void SsdStore::on(const RingDone& done, std::vector<SsdDone>& finished) {
  const auto slot = static_cast<std::uint32_t>(done.token);
  const Part part = parts_[slot];
  parts_.release(slot);
  if (part.page != nullptr) pages_.push_back(part.page);
  --segments_.at(part.segment).busy;
  if (part.batch != kNone) {
    Batch& batch = batches_[part.batch];
    if (part.role == Role::sync) {
      for (Item& item : batch.items) {
        if (item.where.segment == part.segment && item.error == Error::OK) item.error = done.error;
      }
    } else {
      Item& item = batch.items[part.item];
      if (done.error != Error::OK) item.error = done.error;
      if (part.role == Role::read && item.error == Error::OK) {
        item.error = checked(item);
        if (item.error == Error::OK) counters_.bytes_read += item.what.bytes;
        if (item.error == Error::CHECKSUM_MISMATCH) ++counters_.mismatches;
      }
    }
    // A device that refused to keep something is not appended to any more: what it holds of that is not known.
    if (done.error != Error::OK && batch.writes && part.segment == tail_) leave_tail();
    part_over(part.batch, finished);
  }
  close_if_idle(part.segment);
}

void SsdStore::part_over(std::uint32_t b, std::vector<SsdDone>& finished) {
  Batch& batch = batches_[b];
  if (--batch.parts > 0) return;
  if (batch.writes && settings_.sync && !std::exchange(batch.syncing, true)) begin_syncs(b);
  if (batch.parts == 0) finish(b, finished);
}

void SsdStore::begin_syncs(std::uint32_t b) {
  std::vector<std::uint64_t> numbers;
  for (const Item& item : batches_[b].items) {
    if (item.error == Error::OK) numbers.push_back(item.where.segment);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const std::uint64_t number : numbers) {
    Part part{.role = Role::sync, .batch = b, .segment = number};
    part.request.kind = RingRequest::Kind::sync;
    add(part);
  }
}

void SsdStore::finish(std::uint32_t b, std::vector<SsdDone>& finished) {
  Batch batch = std::exchange(batches_[b], {});
  batches_.release(b);
  SsdDone answer{.token = batch.token};
  for (std::uint32_t i = 0; i < batch.items.size(); ++i) {
    const Item& item = batch.items[i];
    if (item.error != Error::OK) answer.failed.emplace_back(i, item.error);
    if (!batch.writes || item.where.segment == 0) continue;
    const Name name{item.what.key, item.what.version};
    if (item.error != Error::OK || item.forgotten) {
      drop(name, item.where);
      continue;
    }
    counters_.bytes_written += item.where.bytes;
    const auto [at, first] = index_.try_emplace(name, item.where);
    if (!first) drop(name, std::exchange(at->second, item.where));
  }
  finished.push_back(std::move(answer));
}

void SsdStore::poll(std::vector<SsdDone>& finished) {
  while (!waiting_.empty() && start(waiting_.front())) waiting_.pop_front();
  for (const std::uint32_t b : std::exchange(at_once_, {})) finish(b, finished);
}

// --- after a crash ---

namespace {

/// A file read from its start on through one buffer, page by page.
class PageReader {
 public:
  PageReader(int fd, std::uint64_t bytes, const Memory& buffer) : fd_(fd), bytes_(bytes), buffer_(buffer) {}

  /// Null at the end of the file and where the device gives nothing.
  const std::byte* page(std::uint64_t at) {
    if (at + kPage > bytes_) return nullptr;
    if (at < base_ || at + kPage > base_ + have_) {
      const ssize_t got = pread(fd_, buffer_.data, buffer_.bytes, static_cast<off_t>(at));
      base_ = at;
      have_ = got > 0 ? static_cast<std::uint64_t>(got) : 0;
      if (have_ < kPage) return nullptr;
    }
    return buffer_.data + (at - base_);
  }

 private:
  int fd_;
  std::uint64_t bytes_;
  Memory buffer_;
  std::uint64_t base_ = 0, have_ = 0;
};

bool payload_matches(PageReader& reader, const RecordHeader& header) {
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < header.bytes; at += kPage) {
    const std::byte* page = reader.page(header.offset + kPage + at);
    if (page == nullptr) return false;
    crc = crc32c(page, std::min(kPage, header.bytes - at), crc);
  }
  return crc == header.payload_crc;
}

}  // namespace

void SsdStore::recover_segment(std::uint64_t number,
                               std::unordered_map<ObjectKey, std::uint64_t, ObjectKeyHash>& newest) {
  bool direct = false;
  const int fd = folder_.open(number, direct);
  struct stat status {};
  if (fd < 0) throw RealError("a segment in " + folder_.path() + " cannot be opened", -fd);
  if (fstat(fd, &status) != 0) throw RealError("a segment in " + folder_.path() + " cannot be read", errno);
  const int file = ring_.attach(fd, direct);
  if (file < 0) throw RealError("segments in " + folder_.path() + " are more than may be open", -file);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  segments_[number] = {.fd = fd, .file = file, .capacity = bytes, .tail = bytes};
  bytes_on_disk_ += bytes;

  const Arena buffer(4UL << 20);
  PageReader reader(fd, bytes, buffer.memory());
  std::uint64_t at = 0;
  while (const std::byte* page = reader.page(at)) {
    const auto header = decode(page);
    const bool here = header && header->segment == number && header->offset == at && header->bytes <= bytes;
    if (!here || (!header->forgotten && !payload_matches(reader, *header))) {
      if (header) ++counters_.dropped;
      at += kPage;
      continue;
    }
    at += record_bytes(header->bytes);
    if (header->forgotten) continue;
    const Name name{header->key, header->version};
    const Where where{number, header->offset, header->bytes, header->payload_crc};
    ++segments_[number].kept;
    const auto [best, first] = newest.try_emplace(header->key, header->version);
    if (!first && best->second > header->version) {
      ++counters_.dropped;
      drop(name, where);
      continue;
    }
    if (!first) {
      const Name old{header->key, std::exchange(best->second, header->version)};
      ++counters_.dropped;
      drop(old, std::exchange(index_[old], {}));
      index_.erase(old);
    }
    index_[name] = where;
  }
}

void SsdStore::recover() {
  std::unordered_map<ObjectKey, std::uint64_t, ObjectKeyHash> newest;
  const std::vector<std::uint64_t> numbers = folder_.segments();
  for (const std::uint64_t number : numbers) {
    recover_segment(number, newest);
    next_segment_ = std::max(next_segment_, number + 1);
  }
  for (const std::uint64_t number : numbers) {
    if (segments_.contains(number)) remove_if_empty(number);
  }
  counters_.recovered = index_.size();
}

}  // namespace kvlift::real
