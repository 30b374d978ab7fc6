// How often the test program has allocated so far.
#pragma once

#include <cstdint>

namespace kvlift::real {

std::uint64_t allocations();

}  // namespace kvlift::real
