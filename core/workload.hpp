// What is asked of the engine: requests with their prefix blocks, in phases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/time.hpp"
#include "core/units.hpp"

namespace kvlift {

/// One prompt. An id stands for its block and all before it, so equal leading ids are a shared prefix.
struct Request {
  std::uint64_t id = 0;  ///< 0, 1, ... in order of issue
  Time arrival;          ///< since the start of its phase; ignored in a closed loop
  Tokens input, output;
  std::vector<std::uint64_t> block_ids;
};

/// The next request of a trace; false at its end. Called in order, once.
using RequestSource = std::function<bool(Request&)>;

struct Phase {
  enum class Kind : std::uint8_t {
    closed_loop,  ///< `concurrency` clients, each issues its next prompt when its last one has finished
    pause,        ///< nothing for `span`
    open_loop,    ///< requests of `source` at their arrival times
  };
  std::string name;
  Kind kind = Kind::closed_loop;
  std::int64_t first_prompt = 0;  ///< closed loop: prompts first .. first + count - 1, each of its own blocks
  std::int64_t prompts = 0;
  std::int64_t concurrency = 1;
  Duration span;
  bool measured = false;  ///< its table is printed by compare
};

struct Workload {
  std::vector<Phase> phases;
  Tokens prompt_tokens = {0};      ///< closed loop: length of every prompt
  Tokens prompt_output = {1};      ///< closed loop: tokens generated
  std::vector<Bytes> block_bytes;  ///< closed loop: sizes of a prompt's blocks, repeated cyclically;
                                   ///< empty: block_tokens x bytes_per_token
  RequestSource source;            ///< open loop
};

}  // namespace kvlift
