// "Did you mean": the known word nearest to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvlift::experiment {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// `; did you mean "x"?` for the nearest word, or nothing when none is near. The first of equals wins.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace kvlift::experiment
