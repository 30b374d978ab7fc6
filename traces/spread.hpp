// Arrivals set apart inside the ticks in which a trace counts them.
//
// The published conversation trace stamps requests every 3 s, up to 28 with one stamp. Played as they stand they would
// queue for each other, which is an artefact of the stamps. A tick reaches to the next stamp, which is read from the
// trace itself; the last tick is as long as the one before, and a trace with one stamp only stays as it is. Order is
// kept. Memory is two ticks of requests.
//
//   stamps   0 0 0 0 . . . . 3 3 . . .        even: 0 0.75 1.5 2.25 | 3 4.5 |
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/time.hpp"
#include "traces/request.hpp"

namespace kvlift {

struct SpreadSettings {
  enum class Kind : std::uint8_t {
    none,     ///< requests of a tick arrive together
    even,     ///< request i of n arrives i/n into its tick, rounded down to a nanosecond
    uniform,  ///< at sorted random points of its tick
  };
  Kind kind = Kind::none;
  std::uint64_t seed = 1;  ///< uniform only
};

/// What was found and done; a result that rests on a trace says it.
struct SpreadReport {
  SpreadSettings::Kind kind = SpreadSettings::Kind::none;
  std::int64_t requests = 0;
  std::int64_t distinct_stamps = 0;
  std::int64_t largest_tick = 0;       ///< requests with one stamp
  Duration shortest_gap, longest_gap;  ///< between stamps; 0 when there is one
};

/// One line: "12031 requests on 1180 stamps 2997 to 3003 ms apart, up to 28 on one; spread: even".
std::string to_text(const SpreadReport& report);

class Spreader {
 public:
  /// More requests on one stamp than this are refused: they would all have to be held.
  static constexpr std::size_t kTickRequestsMax = 1 << 16;

  /// `source` gives requests by arrival.
  Spreader(TraceSource source, SpreadSettings settings);

  /// Throws TraceError, its own or the source's.
  bool next(TraceRequest& request);
  /// Complete once next() has returned false.
  const SpreadReport& report() const { return report_; }

 private:
  bool read_tick();
  void place_arrivals();
  void count(Time stamp);

  TraceSource source_;
  SpreadSettings settings_;
  Random random_;
  SpreadReport report_;
  std::vector<TraceRequest> tick_;  ///< kept for their memory beyond size_
  std::vector<std::int64_t> offsets_ns_;
  std::size_t size_ = 0, given_ = 0;
  TraceRequest ahead_;  ///< first of the next tick, when has_ahead_
  bool has_ahead_ = false, started_ = false;
  Time stamp_;
  std::int64_t on_stamp_ = 0;
  Duration gap_;
};

}  // namespace kvlift
