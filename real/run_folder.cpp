#include "real/run_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "real/error.hpp"

namespace kvlift::real {

RunFolder::RunFolder(const std::string& parent) : path_(parent + "/kvlift-run-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) throw RealError("folder " + parent + " cannot be written", errno);
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kvlift::real
