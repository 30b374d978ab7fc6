#include "tools/experiment/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += ".part" + std::to_string(getpid());
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw UserError(path_.string() + ": cannot be written: " + std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void OutputFile::commit() {
  stream_.close();
  std::error_code error;
  if (stream_) std::filesystem::rename(temporary_, path_, error);
  if (!stream_ || error)
    throw UserError(path_.string() + ": cannot be written: " + (error ? error.message() : std::strerror(errno)));
  temporary_.clear();
}

}  // namespace kvlift::experiment
