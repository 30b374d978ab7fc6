// The drivers this program links.
#pragma once

#include "tools/experiment/driver_registry.hpp"

namespace kvlift {

experiment::Drivers linked_drivers();

}  // namespace kvlift
