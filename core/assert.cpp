#include "core/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace kvlift {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "kvlift: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace kvlift
