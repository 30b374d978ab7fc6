// The ring on the best engine that this machine allows.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "real/ring.hpp"

namespace kvlift::real {

/// io_uring, else pread with one line to `on_step_down`, which stays the ring's. `files_max` files can be attached.
/// Throws RealError when io_uring is refused and the settings are strict.
std::unique_ptr<Ring> open_ring(const RingSettings& settings, unsigned files_max,
                                const std::function<void(const std::string&)>& on_step_down);

}  // namespace kvlift::real
