#include "core/run.hpp"

#include <algorithm>

namespace kvlift {

bool not_exercised(const Policy& policy, const PhaseResult& phase) {
  return policy.trigger != Policy::Trigger::none && count_of(phase.counters, "promotion_committed") == 0;
}

std::uint64_t count_of(const Counters& counters, std::string_view name) {
  const auto found = std::find_if(counters.begin(), counters.end(), [&](const auto& c) { return c.first == name; });
  return found == counters.end() ? 0 : found->second;
}

}  // namespace kvlift
