// What keeps the executor from starting: one line for the user, with the errno's text.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace kvlift::real {

/// Thrown only while something is opened, mapped or connected; a running executor answers with kvlift::Error.
class RealError : public std::runtime_error {
 public:
  explicit RealError(const std::string& what) : std::runtime_error(what) {}
  RealError(const std::string& what, int error) : std::runtime_error(what + ": " + std::strerror(error)) {}
};

}  // namespace kvlift::real
