// The drivers this program links.
#pragma once

#include "tools/experiment/driver_registry.hpp"
#include "tools/kvlift/real_options.hpp"

namespace kvlift {

/// `real` is among them where its libraries were there at build time.
experiment::Drivers linked_drivers(const RealCommand& real);

}  // namespace kvlift
