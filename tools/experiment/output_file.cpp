#include "tools/experiment/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {

namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path place_of(const fs::path& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : place;
}

OutputFile::OutputFile(const fs::path& path) : name_(path.string()), place_(place_of(path)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(place_, ignored);
  if (fs::is_directory(status)) throw UserError(name_ + ": cannot be written: it is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw UserError(name_ + ": cannot be written: it is not a regular file");
  temporary_ = place_;
  temporary_ += ".part" + std::to_string(getpid());
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) throw UserError(name_ + ": cannot be written: " + std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  stream_.close();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void OutputFile::commit() {
  stream_.close();
  std::error_code error;
  if (stream_) fs::rename(temporary_, place_, error);
  if (!stream_ || error)
    throw UserError(name_ + ": cannot be written: " + (error ? error.message() : std::strerror(errno)));
  temporary_.clear();
}

}  // namespace kvlift::experiment
