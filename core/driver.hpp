// The whole contract between core and a driver.
//
// Core appends effects; the driver performs each one and answers with exactly one completion that carries the
// effect's id. Nothing else passes the seam: no clock is read, nothing is decided by a driver. A driver is
// free to complete effects in any order, to fail them, to cut them short and to deliver an RPC twice: that is
// how faults are injected.
//
//   core --Effect--> driver --(time passes, bytes move)--> Completion --> core
//
// An RPC is two effects: rpc_request completes when the request has reached the callee and has been served
// (its handler then runs inside core), rpc_reply when the answer is back. A failed rpc_request means the
// handler never ran; a failed rpc_reply means it ran and the caller does not know.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

/// Names one effect for ever: 8 bits of component, 24 of slot, 32 of sequence.
enum class EffectId : std::uint64_t { none = 0 };

/// Stands for the master where a node is expected.
inline constexpr NodeId kMasterNode = static_cast<NodeId>(0xfffffffe);

enum class EffectKind : std::uint8_t {
  timer,        ///< completes at `at`
  rpc_request,  ///< `node` calls `peer`; `requests` is the number of keys it carries
  rpc_reply,    ///< `node` answers `peer`
  disk_read,    ///< `bytes` in `requests` device requests, one after another, from the SSD of `node`
  disk_write,   ///< `bytes` in `requests` device requests to the SSD of `node`
  transfer,  ///< `bytes` in `requests` keys from the memory of `node` to the memory of `peer` (the same host: a copy)
  compute,   ///< `node`'s accelerator is busy for `span`
};

/// Where bytes stand. Only drivers that move bytes read it.
struct Place {
  enum class Kind : std::uint8_t {
    none,
    segment,  ///< `offset` bytes into DRAM segment `number`, mounted by `node`
    staging,  ///< `offset` bytes into the staging arena of `node`
    ssd,      ///< the object of that key and version on the SSD of `node`
    user,     ///< item `offset` of the operation that `node`'s user named `number`
  };
  Kind kind = Kind::none;
  NodeId node = NodeId::none;
  std::uint64_t number = 0;
  std::int64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// One object's part of a disk_read, disk_write or transfer.
struct Extent {
  ObjectKey key;
  std::uint64_t version = 0;  ///< of the object on SSD; 0 elsewhere
  Bytes size;
  Place from, to;
};

/// An object that the SSD of `node` need not keep any more.
struct Forgotten {
  NodeId node = NodeId::none;
  ObjectKey key;
  std::uint64_t version = 0;
};

/// What a driver that moves bytes needs beside the effects; filled only when the plan asks for it.
struct Places {
  std::vector<Extent> extents;       ///< of all effects not yet taken
  std::vector<Forgotten> forgotten;  ///< the master was told before; nothing is answered
  void clear() {
    extents.clear();
    forgotten.clear();
  }
};

struct Effect {
  EffectId id = EffectId::none;
  EffectKind kind = EffectKind::timer;
  NodeId node = NodeId::none;
  NodeId peer = NodeId::none;
  std::int32_t requests = 0;
  Bytes bytes = {};
  NodeId accelerator = NodeId::none;  ///< transfer only: whose accelerator memory is at one of its ends, if any
  bool background = false;            ///< disk_read only: nobody waits for it yet; demand may go first
  Bytes cached = {};                  ///< disk_read only: the part that the host's page cache holds
  Time at = {};                       ///< timer only
  Duration span = {};                 ///< compute only
  std::uint32_t first_extent = 0;     ///< its places are `extents` of Places::extents from here on
  std::uint32_t extents = 0;
};

struct Completion {
  EffectId id = EffectId::none;
  Error error = Error::OK;
  Bytes bytes = {};              ///< what really arrived, for disk and transfer; short is not OK
  bool delivered_twice = false;  ///< rpc_request only: the callee's handler runs a second time
  /// disk_read that is OK as a whole: which of its extents failed alone, ascending; `bytes` counts the others.
  std::span<const std::uint32_t> failed = {};
};

using Effects = std::vector<Effect>;

}  // namespace kvlift
