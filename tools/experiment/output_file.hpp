// Files that appear whole or not at all: written beside their place, then renamed.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kvlift::experiment {

class OutputFile {
 public:
  /// Opens the temporary file at once, so that a place that cannot be written is found before the runs.
  explicit OutputFile(std::filesystem::path path);
  OutputFile(OutputFile&&) = default;
  ~OutputFile();  ///< without commit(): nothing is left

  std::ostream& stream() { return stream_; }
  /// UserError when the bytes did not reach the disk.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream stream_;
};

}  // namespace kvlift::experiment
