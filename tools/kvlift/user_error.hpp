// What the user of a tool has to put right: a file, a field, an option. main() prints it in one line and exits
// with 2. Messages name the place first ("scenario.json: engine.ranks: ..."), hold no line break and no full stop.
#pragma once

#include <stdexcept>

namespace kvlift {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kvlift
