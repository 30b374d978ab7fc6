#include "traces/prefix_tree.hpp"

namespace kvlift {
namespace {

std::string place(const std::optional<std::uint64_t>& parent) {
  return parent ? "behind " + std::to_string(*parent) : "at the start";
}

}  // namespace

std::string PrefixTree::add(const std::vector<std::uint64_t>& ids) {
  std::optional<std::uint64_t> parent;
  for (const std::uint64_t id : ids) {
    const auto [known, is_new] = parents_.try_emplace(id, parent);
    if (!is_new && known->second != parent) {
      return "id " + std::to_string(id) + " was first " + place(known->second) + ", found it " + place(parent) +
             " (an id stands for its block and all before it)";
    }
    parent = id;
  }
  return "";
}

}  // namespace kvlift
