#include "traces/writer.hpp"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <random>
#include <string_view>
#include <system_error>

#include "core/assert.hpp"
#include "traces/error.hpp"

namespace kvlift {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFlushBytes = 256 << 10;

void append_number(std::uint64_t number, std::string& text) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

void append_field(std::string_view name, std::int64_t value, std::string& text) {
  KVLIFT_ASSERT(value >= 0);
  text += name;
  append_number(static_cast<std::uint64_t>(value), text);
}

std::string random_suffix() {
  std::random_device device;
  std::string text = ".part";
  append_number(device(), text);
  return text;
}

}  // namespace

void append_line(const TraceRequest& request, std::string& text) {
  const std::int64_t half = milliseconds(1).ns / 2;
  append_field("{\"timestamp\": ", (request.arrival + nanoseconds(half)).ns / milliseconds(1).ns, text);
  append_field(", \"input_length\": ", request.input_length.value, text);
  append_field(", \"output_length\": ", request.output_length.value, text);
  text += ", \"hash_ids\": [";
  std::string_view separator;
  for (const std::uint64_t id : request.hash_ids) {
    text += separator;
    append_number(id, text);
    separator = ", ";
  }
  text += "]}\n";
}

struct TraceWriter::File {
  gzFile file = nullptr;
  ~File() {
    if (file != nullptr) gzclose(file);
  }
};

TraceWriter::TraceWriter(const std::string& path, Packing packing)
    : name_(path), path_(path), file_(std::make_unique<File>()) {
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) fail("is not a regular file");
  if (fs::is_symlink(path_, error)) path_ = fs::weakly_canonical(path_, error);  // what the link leads to is replaced
  temporary_ = path_;
  temporary_ += random_suffix();
  errno = 0;
  file_->file = gzopen(temporary_.c_str(), packing == Packing::gzip ? "wb6" : "wbT");
  if (file_->file == nullptr) {
    const int code = errno;
    temporary_.clear();
    fail(std::string("cannot be written: ") + (code != 0 ? std::strerror(code) : "no memory"));
  }
}

TraceWriter::~TraceWriter() {
  file_.reset();
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void TraceWriter::fail(const std::string& what) const { throw TraceError(name_ + ": " + what); }

void TraceWriter::write(const TraceRequest& request) {
  append_line(request, text_);
  if (text_.size() >= kFlushBytes) flush();
}

void TraceWriter::flush() {
  if (text_.empty()) return;
  errno = 0;
  if (gzwrite(file_->file, text_.data(), static_cast<unsigned>(text_.size())) == 0) {
    fail(std::string("cannot be written: ") + std::strerror(errno));
  }
  text_.clear();
}

void TraceWriter::commit() {
  flush();
  errno = 0;
  gzFile file = file_->file;
  file_->file = nullptr;
  if (gzclose(file) != Z_OK) fail(std::string("cannot be written: ") + std::strerror(errno));
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) fail("cannot be written: " + error.message());
  temporary_.clear();
}

}  // namespace kvlift
