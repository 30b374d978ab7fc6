// Short names for the rows of the parameter table.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tools/experiment/parameter.hpp"

/// The field `member` of Settings `s`; `i` is the index of the array in the path.
#define KVLIFT_FIELD(member) [](Settings& s, std::size_t i) -> Slot { return (void)i, &s.member; }
/// The same for an enum.
#define KVLIFT_CHOICE(member) \
  [](Settings& s, std::size_t i) -> Slot { return (void)i, reinterpret_cast<std::uint8_t*>(&s.member); }

namespace kvlift::experiment::row {

using SlotOf = Slot (*)(Settings&, std::size_t);

inline constexpr double kYearSeconds = 31'536'000;  ///< no span of a run is longer
inline constexpr double kHuge = 9.0e15;             ///< integers up to here are exact in a double
inline constexpr double kDelaySeconds = 60;         ///< no single act of a machine takes longer
inline constexpr double kNodesMax = 10'000;         ///< of a cluster
inline constexpr double kSegmentBytesMax = 1e14;    ///< times kNodesMax it is still a count of bytes
inline constexpr double kObjectBytesMax = 1e11;     ///< times the blocks of a prompt too

struct Text {
  const char* path;
  const char* doc;
  const char* source;
};

inline Parameter row(const Text& text, const char* unit, SlotOf slot) {
  Parameter p;
  p.path = text.path;
  p.unit = unit;
  p.doc = text.doc;
  p.source = text.source;
  p.slot = slot;
  return p;
}

inline Parameter number(const Text& text, const char* unit, SlotOf slot, double min, double max = kHuge) {
  Parameter p = row(text, unit, slot);
  p.min = min;
  p.max = max;
  return p;
}

/// A rate or size of which zero would mean that nothing ever happens.
inline Parameter positive(const Text& text, const char* unit, SlotOf slot, double max = kHuge) {
  Parameter p = number(text, unit, slot, 0, max);
  p.min_excluded = true;
  return p;
}

/// Between a floppy disk and what no machine has: slower than that, a run is all waiting.
inline Parameter bandwidth(const Text& text, SlotOf slot) { return number(text, "bytes/s", slot, 1e6, 1e15); }

inline Parameter ratio(const Text& text, SlotOf slot) { return number(text, "ratio", slot, 0, 1); }

/// A span of time; the unit is the end of the path.
inline Parameter span(const Text& text, const char* unit, double unit_ns, SlotOf slot, double min = 0) {
  Parameter p = number(text, unit, slot, min, kYearSeconds * 1e9 / unit_ns);
  p.scale = unit_ns;
  return p;
}
inline Parameter span_ms(const Text& text, SlotOf slot, double min = 0) { return span(text, "ms", 1e6, slot, min); }

/// What one act takes: a latency, a handler, a step.
inline Parameter delay(const Text& text, const char* unit, double unit_ns, SlotOf slot) {
  Parameter p = span(text, unit, unit_ns, slot);
  p.max = kDelaySeconds * 1e9 / unit_ns;
  return p;
}
inline Parameter delay_ms(const Text& text, SlotOf slot) { return delay(text, "ms", 1e6, slot); }
inline Parameter delay_us(const Text& text, SlotOf slot) { return delay(text, "us", 1e3, slot); }

inline Parameter toggle(const Text& text, SlotOf slot) { return row(text, "", slot); }

inline Parameter choice(const Text& text, SlotOf slot, std::vector<std::string> names) {
  Parameter p = row(text, "", slot);
  p.choices = std::move(names);
  return p;
}

}  // namespace kvlift::experiment::row
