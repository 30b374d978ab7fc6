// A way for bytes to go between the memory of this process and that of one peer: one-sided, asynchronous.
//
// What makers share: local_link.hpp (copies), tcp_link.hpp, verbs_link.hpp (RDMA). A link belongs to one thread.
// Each accepted transfer is answered once and only once; when the peer or the way to it breaks, with TRANSFER_FAIL.
// Until then its bytes must stay in place. Places are offsets into memory that was named when the link was made, so
// that neither side handles the other's addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace kvlift::real {

/// Memory that transfers start and end in; mapped for as long as a link uses it.
struct Memory {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct Transfer {
  enum class Direction : std::uint8_t {
    write,  ///< from here to the peer
    read,   ///< from the peer to here
  };
  std::uint64_t token = 0;  ///< comes back with the answer
  Direction direction = Direction::write;
  std::uint64_t local = 0;   ///< offset in bytes into this side's memory
  std::uint64_t remote = 0;  ///< offset in bytes into the peer's memory
  std::uint64_t bytes = 0;   ///< > 0
};

struct TransferDone {
  std::uint64_t token = 0;
  Error error = Error::OK;  ///< OK, INVALID_PARAMS (outside the memory of either side) or TRANSFER_FAIL
  std::int32_t cause = 0;   ///< errno, or the status that the device gave; 0 with OK
};

class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// False when as many transfers are under way as the link takes: poll first.
  virtual bool post(const Transfer& transfer) = 0;
  /// Appends the answers that have come in; never waits.
  virtual void poll(std::vector<TransferDone>& done) = 0;
  /// Readable, for poll(2), when poll() has something to do. Belongs to the link.
  virtual int ready_fd() const = 0;
  /// One line for result files and logs: what carries the bytes, with what settings.
  virtual std::string describe() const = 0;
};

}  // namespace kvlift::real
