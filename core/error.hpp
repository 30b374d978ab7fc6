// The codes a store answers with. One word serves everywhere: error name = metric label = log field.
//
// Names and values are Mooncake Store's (store-mechanics section 1.4), so that counters can be laid beside a
// real deployment's. PROMOTION_ALREADY_EXISTS has no published value; it is numbered apart.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvlift {

enum class [[nodiscard]] Error : std::int32_t{
    OK = 0,
    BUFFER_OVERFLOW = -10,     ///< staging arena exhausted even after one sweep
    SEGMENT_NOT_FOUND = -101,  ///< the master does not know this client's segment (restart, expiry, drain)
    SEGMENT_ALREADY_EXISTS = -102,
    NO_AVAILABLE_HANDLE = -200,  ///< DRAM allocation failed; the memory-pressure signal
    INVALID_KEY = -400,          ///< the holder's SSD index has no such key
    INVALID_PARAMS = -600,       ///< bad size, or the caller is not the holder
    ILLEGAL_CLIENT = -601,       ///< put end from another client than the put's writer
    INVALID_WRITE = -700,        ///< put end or revoke in the wrong state
    INVALID_READ = -701,
    INVALID_REPLICA = -702,
    REPLICA_IS_NOT_READY = -703,  ///< only incomplete replicas, a put in flight, or no task
    OBJECT_NOT_FOUND = -704,
    OBJECT_ALREADY_EXISTS = -705,
    OBJECT_HAS_LEASE = -706,  ///< removal while leased; also a staged read that outlived its staging
    LEASE_EXPIRED = -707,     ///< the transfer ended after the lease it ran under
    OBJECT_HAS_REPLICATION_TASK = -708,
    OBJECT_REPLICA_BUSY = -714,  ///< a replica is referenced
    TRANSFER_FAIL = -800,
    CHECKSUM_MISMATCH = -801,
    RPC_FAIL = -900,
    RPC_TIMEOUT = -901,
    UNAVAILABLE_IN_CURRENT_STATUS = -1010,  ///< the master does not serve (standby, restoring)
    FILE_NOT_FOUND = -1100,
    FILE_OPEN_FAIL = -1101,
    FILE_READ_FAIL = -1102,  ///< also a short read
    FILE_WRITE_FAIL = -1103,
    BUCKET_NOT_FOUND = -1200,
    BUCKET_ALREADY_EXISTS = -1201,
    KEYS_EXCEED_BUCKET_LIMIT = -1202,
    KEYS_ULTRA_LIMIT = -1203,  ///< a queue or quota is full
    UNABLE_OFFLOAD = -1300,
    UNABLE_OFFLOADING = -1301,  ///< the holder does not accept offloads now
    TENANT_QUOTA_EXCEEDED = -1700,
    PROMOTION_ALREADY_EXISTS = -20001,  ///< a MEMORY replica or a promotion task is there; the caller skips quietly
};

/// The enumerator's own spelling; "UNKNOWN_ERROR" for a value outside the list.
std::string_view to_string(Error error);

/// A value or the error that stands in its place; `value` is meaningful only when `error` is OK.
template <class T>
struct [[nodiscard]] Result {
  Error error = Error::OK;
  T value{};
  constexpr bool ok() const { return error == Error::OK; }
};

}  // namespace kvlift
