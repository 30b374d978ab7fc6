#include "core/policy.hpp"

namespace kvlift {

std::optional<Policy> policy_preset(std::string_view name) {
  Policy policy;
  if (name == "none") return policy;
  if (name == "promotion-on-hit") {  // #2071, #2690; section 8.2 column P1
    policy.trigger = Policy::Trigger::on_hit;
    policy.gate_frequency = true;
    policy.gate_watermark = true;
    policy.execution = Policy::Execution::pull;
    policy.retry_candidates = true;
    return policy;
  }
  if (name == "rfc-4271") {  // section 8.2 column P4
    policy.trigger = Policy::Trigger::exist_probe;
    policy.gate_cooldown = true;
    policy.lease = Policy::LeaseMoment::commit;
    policy.get_wait = Policy::GetWait::batch_deadline;
    policy.get_kick = true;
    return policy;
  }
  return std::nullopt;
}

const std::vector<std::string_view>& policy_preset_names() {
  static const std::vector<std::string_view> names{"none", "promotion-on-hit", "rfc-4271"};
  return names;
}

}  // namespace kvlift
