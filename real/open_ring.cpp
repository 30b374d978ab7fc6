#include "real/open_ring.hpp"

#include "real/error.hpp"
#include "real/pread_kernel.hpp"
#include "real/uring_kernel.hpp"

namespace kvlift::real {

std::unique_ptr<Ring> open_ring(const RingSettings& settings, unsigned files_max,
                                const std::function<void(const std::string&)>& on_step_down) {
  std::unique_ptr<Kernel> kernel;
  try {
    kernel = std::make_unique<UringKernel>(settings.depth, files_max);
  } catch (const RealError& refused) {
    if (settings.strict) throw;
    if (on_step_down) on_step_down(std::string("ring: reads and writes block their thread: ") + refused.what());
    kernel = std::make_unique<PreadKernel>(settings.depth);
  }
  auto ring = std::make_unique<Ring>(std::move(kernel), settings);
  ring->on_step_down = on_step_down;
  return ring;
}

}  // namespace kvlift::real
