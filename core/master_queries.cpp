// Existence and metadata queries (store-mechanics 2.4), with the lease policies of the probe (8.4).
#include <algorithm>

#include "core/master_state.hpp"

namespace kvlift {

void Master::exist(std::span<const ObjectKey> keys, Time now, std::vector<bool>& out) {
  State& s = *state_;
  out.assign(keys.size(), false);
  std::size_t prefix = 0;  // leading keys that are there
  std::vector<Slot> hits;
  hits.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Object* object = s.find(keys[i]);
    const bool present = object != nullptr && s.readable(*object);
    out[i] = present;
    if (present && prefix == i) ++prefix;
    hits.push_back(present ? s.slot_of(*object) : kNoSlot);
  }
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoSlot) continue;
    bool lease = true;
    switch (s.policy.probe_lease) {
      case Policy::ProbeLease::every_hit:
        break;
      case Policy::ProbeLease::none:
        lease = false;
        break;
      case Policy::ProbeLease::last_hit_only:
        lease = i + 1 == prefix;
        break;
      case Policy::ProbeLease::longest_prefix:
        lease = i < prefix;
        break;
    }
    if (lease) s.grant_lease(s.objects[hits[i]], now);
  }
}

namespace {

/// A copy in the asking node's own memory is nearest; otherwise the first that is complete.
const MemoryReplica* nearest(const Object& object, NodeId reader) {
  const MemoryReplica* best = nullptr;
  for (const MemoryReplica& r : object.memory) {
    if (!r.complete) continue;
    if (r.at.node == reader) return &r;
    if (best == nullptr) best = &r;
  }
  return best;
}

}  // namespace

ObjectView Master::query_read_only(NodeId reader, const ObjectKey& key) const {
  const State& s = *state_;
  ObjectView view;
  if (!s.serving) {
    view.error = Error::UNAVAILABLE_IN_CURRENT_STATUS;
    return view;
  }
  const Object* object = s.find(key);
  if (object == nullptr) return view;
  view.size = object->size;
  if (const MemoryReplica* r = nearest(*object, reader)) {
    view.in_memory = true;
    view.memory = r->at;
  }
  view.on_disk = object->on_disk;
  if (view.on_disk) {
    view.holder = object->disk_holder;
    view.holder_epoch = object->disk_epoch;
  }
  view.error = view.in_memory || view.on_disk ? Error::OK : Error::REPLICA_IS_NOT_READY;
  return view;
}

ObjectView Master::query(NodeId reader, const ObjectKey& key, Time now) {
  State& s = *state_;
  ObjectView view = query_read_only(reader, key);
  if (view.error != Error::OK) return view;
  Object& object = *s.find(key);
  s.grant_lease(object, now);
  view.lease = s.settings.kv_lease_ttl;
  const bool on_hit = s.settings.promotion_on_hit || s.policy.trigger == Policy::Trigger::on_hit;
  if (on_hit && object.memory.empty() && object.on_disk) {
    const Error refused = s.admit_on_hit(key, now, false);
    (void)refused;  // the gates count their refusals; a query's answer does not depend on them
  }
  return view;
}

}  // namespace kvlift
