// Measures this machine with the parts that a run uses: SSD store, ring, link and timers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/time.hpp"

namespace kvlift::real {

struct CalibrationSettings {
  std::string folder;                      ///< existing, on the SSD; what is made in it is removed
  std::uint64_t object_bytes = 2U << 20;   ///< of a key on one node
  std::uint64_t total_bytes = 1ULL << 30;  ///< written for each of two nodes, then read
  int rounds = 9;                          ///< of each measurement; the median counts
  bool sync = true;
};

/// One batch of reads: `objects` at a time, each of `bytes`.
struct ReadPoint {
  std::uint64_t bytes = 0;
  std::uint32_t objects = 0;
  Duration median;       ///< from the call to the last object, checked
  double bandwidth = 0;  ///< bytes/s at the median
  double spread = 0;     ///< (slowest - fastest) / median
};

struct Calibration {
  double stream_bandwidth = 0;  ///< bytes/s: one batch of 16 objects alone
  double read_bandwidth = 0;    ///< bytes/s: such a batch on each of two nodes at a time
  double write_bandwidth = 0;   ///< bytes/s: a bucket of 16 objects
  double copy_bandwidth = 0;    ///< bytes/s: objects through the link, eight at a time
  Duration read_request;        ///< one more small object in a batch of reads
  Duration write_request;       ///< a bucket of one small object
  Duration copy_request;        ///< one small object through the link, there and its answer back
  Duration oversleep;           ///< by which a wait of 5 ms is too long
  std::vector<ReadPoint> reads;
  std::vector<std::pair<std::string, std::string>> performed_by;
};

/// Throws RealError when the folder, the memory or the ring cannot be had, or an object comes back wrong.
Calibration calibrate(const CalibrationSettings& settings);

}  // namespace kvlift::real
