// How a run on this machine is done. The experiment itself is the plan's.
#pragma once

#include <string>

#include "real/stand_in.hpp"

namespace kvlift::real {

struct RealOptions {
  std::string folder;       ///< on the SSD; a new folder is made in it, and removed when the run is over
  double time_scale = 1;    ///< the plan's seconds in one of this machine's, > 0
  double size_scale = 1;    ///< bytes moved for one of the plan's, > 0 (scaled())
  StandIn::Parts stand_in;  ///< devices of the plan's platform that are waited for beside this machine's
  bool sync = true;         ///< an object counts as stored when the device has it for good
  bool strict = false;      ///< fail rather than use a plainer engine than io_uring with direct I/O
};

}  // namespace kvlift::real
