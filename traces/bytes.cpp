#include "traces/bytes.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "traces/error.hpp"

namespace kvlift {
namespace {

constexpr std::size_t kChunk = 256 << 10;

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")) {
    if (file_ == nullptr) fail();
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  }
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t got = std::fread(to, 1, size, file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) fail();
    return got;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail() const { throw TraceError(path_ + ": cannot be read: " + std::strerror(errno)); }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t got = std::min(size, bytes_.size() - at_);
    std::copy_n(bytes_.data() + at_, got, to);
    at_ += got;
    return got;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Passes plain bytes on and unpacks gzip.
class Unpacked final : public ByteSource {
 public:
  Unpacked(std::unique_ptr<ByteSource> packed, std::string name) : packed_(std::move(packed)), name_(std::move(name)) {
    while (filled_ < 2 && fill()) {
    }
    gzip_ = at_magic();
    if (gzip_ && inflateInit2(&stream_, 15 + 16) != Z_OK) throw TraceError(name_ + ": no memory to unpack gzip");
  }
  ~Unpacked() override {
    if (gzip_) inflateEnd(&stream_);
  }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  std::size_t read(char* to, std::size_t size) override {
    if (gzip_) return unpack(to, size);
    if (filled_ == 0) return packed_->read(to, size);
    const std::size_t got = std::min(size, filled_);
    std::copy_n(at_, got, to);
    at_ += got;
    filled_ -= got;
    return got;
  }

 private:
  /// More packed bytes behind those that are left; false at the end.
  bool fill() {
    std::copy_n(at_, filled_, chunk_.data());
    at_ = chunk_.data();
    const std::size_t got = packed_->read(chunk_.data() + filled_, chunk_.size() - filled_);
    filled_ += got;
    return got != 0;
  }
  bool at_magic() const { return filled_ >= 2 && at_[0] == '\x1f' && at_[1] == '\x8b'; }

  std::size_t unpack(char* to, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
    const std::size_t room = stream_.avail_out;
    while (stream_.avail_out == room && !ended_) {
      if (filled_ == 0 && !fill()) throw TraceError(name_ + ": gzip data end early: the file is truncated");
      stream_.next_in = reinterpret_cast<Bytef*>(at_);
      stream_.avail_in = static_cast<uInt>(filled_);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      at_ += filled_ - stream_.avail_in;
      filled_ = stream_.avail_in;
      if (code == Z_STREAM_END) {
        next_member();
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        throw TraceError(name_ + ": gzip data are damaged" + (stream_.msg ? std::string(": ") + stream_.msg : ""));
      }
    }
    return room - stream_.avail_out;
  }

  void next_member() {
    while (filled_ < 2 && fill()) {
    }
    ended_ = filled_ == 0;
    if (ended_) return;
    if (!at_magic()) throw TraceError(name_ + ": bytes after the end of the gzip data");
    inflateReset(&stream_);
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::array<char, kChunk> chunk_;
  char* at_ = chunk_.data();  ///< bytes read and not used yet: at_ .. at_ + filled_
  std::size_t filled_ = 0;
  bool gzip_ = false;
  bool ended_ = false;
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  return std::make_unique<Unpacked>(std::make_unique<FileBytes>(path), path);
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes, std::string name) {
  return std::make_unique<Unpacked>(std::make_unique<MemoryBytes>(std::move(bytes)), std::move(name));
}

}  // namespace kvlift
