// The figures of a trace as text: a table to read, JSON to compute with. Orders and names are fixed.
#pragma once

#include <string>

#include "traces/info.hpp"

namespace kvlift {

std::string trace_table(const std::string& file, const TraceInfo& info);
/// With a line end.
std::string trace_json(const std::string& file, const TraceInfo& info);

}  // namespace kvlift
