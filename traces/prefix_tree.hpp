// Whether block ids form a tree. An id stands for its block and all before it, so it always follows the same id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kvlift {

class PrefixTree {
 public:
  /// Takes the ids of one more prompt; says in a few words which is out of place, or nothing.
  std::string add(const std::vector<std::uint64_t>& ids);

 private:
  std::unordered_map<std::uint64_t, std::optional<std::uint64_t>> parents_;
};

}  // namespace kvlift
