// trace info | gen | convert: look at a request trace, make one up, rewrite one.
#pragma once

#include <CLI/CLI.hpp>

namespace kvlift {

void add_trace_command(CLI::App& program);

}  // namespace kvlift
