// Files that appear whole or not at all: written beside their place, then renamed.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kvlift::experiment {

class OutputFile {
 public:
  /// Opens the temporary file at once, so that a place that cannot be written is found before the runs. What is
  /// there already must be a regular file, or a link to one, whose target is then replaced; UserError otherwise.
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(OutputFile&&) = default;
  ~OutputFile();  ///< without commit(): nothing is left

  std::ostream& stream() { return stream_; }
  /// Where the bytes will be, without links: equal for two names of one place.
  const std::filesystem::path& place() const { return place_; }
  /// UserError when the bytes did not reach the disk.
  void commit();

 private:
  std::string name_;  ///< as the user gave it
  std::filesystem::path place_;
  std::filesystem::path temporary_;
  std::ofstream stream_;
};

/// The file of that name without links, whether it is there or not.
std::filesystem::path place_of(const std::filesystem::path& path);

}  // namespace kvlift::experiment
