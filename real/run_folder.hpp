// The folder of one run.
#pragma once

#include <string>

namespace kvlift::real {

/// A new folder in `parent`, gone with everything in it at the end. Throws RealError when it cannot be made.
class RunFolder {
 public:
  explicit RunFolder(const std::string& parent);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kvlift::real
