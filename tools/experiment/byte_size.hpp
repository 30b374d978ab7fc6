// Sizes as people write them: "256MiB", "4.53 MB", "1342177280".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvlift::experiment {

/// Bytes, rounded to a whole number; KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, TB of 1000. Empty when the
/// text is not a size.
std::optional<double> parse_byte_size(std::string_view text);
/// "256 MiB" where that is exact, else "4.529 MB"; for people.
std::string byte_size_text(double bytes);

}  // namespace kvlift::experiment
