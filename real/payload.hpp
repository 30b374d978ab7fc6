// What the bytes of an object are in a run: enough of its name in every page to know it again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ids.hpp"

namespace kvlift::real {

/// Marks each 4 KiB of the object, the last part included; the rest stays as it is.
void mark(const ObjectKey& key, std::byte* data, std::uint64_t bytes);

/// Looks at the first, the last, and each `every`th 4 KiB; false when one of them is not the object's.
bool marked(const ObjectKey& key, const std::byte* data, std::uint64_t bytes, std::uint64_t every = 16);

}  // namespace kvlift::real
