// Runs tasks each in a process of its own, several at a time: SimGrid allows one engine to a process, and a
// crash of one run must not take the others along.
//
// A child is a fork of the caller, so the caller should have no threads. Answers come back through a pipe as
// bytes; their order is that of the tasks, whatever order they end in.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kvlift::experiment {

/// A task that did not answer: its process threw, exited or was killed. The message names the task.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ProcessPool {
  std::size_t jobs = 1;
  std::function<std::string(std::size_t)> name;                            ///< of task i, for messages
  std::function<std::string(std::size_t)> work;                            ///< in the child: the answer of task i
  std::function<void(std::size_t done)> on_progress = [](std::size_t) {};  ///< every 100 ms or so
};

/// All answers. A UserError thrown by a task is thrown here as one; anything else is a RunError. The failure
/// of the first task that fails, in their order, whichever ends first; what still runs then is killed.
std::vector<std::string> run_all(const ProcessPool& pool, std::size_t tasks);

}  // namespace kvlift::experiment
