// Assertions that stay on in production: a broken invariant stops the process before it spreads.
#pragma once

namespace kvlift {

/// Prints the expression and its place on standard error and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace kvlift

#define KVLIFT_ASSERT(expression) \
  (static_cast<bool>(expression) ? void(0) : ::kvlift::assertion_failed(#expression, __FILE__, __LINE__))
