#include "tools/experiment/process_pool.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

enum Exit : int { answered = 0, user_error = 2, failed = 3 };

struct Child {
  std::size_t task = 0;
  pid_t pid = -1;
  int pipe = -1;
  std::string answer;
};

void write_all(int pipe, const std::string& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(pipe, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(failed);
    written += static_cast<std::size_t>(n);
  }
}

/// The child's whole life. _exit: what the parent had buffered is the parent's to print.
[[noreturn]] void live(const ProcessPool& pool, std::size_t task, int pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(failed);
  std::string answer;
  Exit code = answered;
  try {
    answer = pool.work(task);
  } catch (const UserError& error) {
    answer = error.what();
    code = user_error;
  } catch (const std::exception& error) {
    answer = error.what();
    code = failed;
  }
  write_all(pipe, answer);
  _exit(code);
}

/// Kills and reaps what still runs when the pool is left by an exception.
struct Children {
  std::vector<Child> running;
  ~Children() {
    for (const Child& child : running) {
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
      ::close(child.pipe);
    }
  }
};

Child start(const ProcessPool& pool, std::size_t task, const Children& siblings) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw RunError(std::string("no pipe for a run: ") + std::strerror(errno));
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw RunError(std::string("no process for a run: ") + std::strerror(errno));
  }
  if (pid == 0) {
    ::close(ends[0]);
    for (const Child& sibling : siblings.running) ::close(sibling.pipe);
    live(pool, task, ends[1], parent);
  }
  ::close(ends[1]);
  return {task, pid, ends[0], {}};
}

/// True at the end of the pipe.
bool read_some(Child& child) {
  std::array<char, 65536> buffer{};
  const ssize_t n = ::read(child.pipe, buffer.data(), buffer.size());
  if (n > 0) child.answer.append(buffer.data(), static_cast<std::size_t>(n));
  return n == 0 || (n < 0 && errno != EINTR);
}

/// Throws unless the task answered.
void reap(const ProcessPool& pool, const Child& child) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(child.pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == answered) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == user_error) throw UserError(child.answer);
  std::string why = child.answer.empty() ? "ended without a result" : child.answer;
  if (WIFSIGNALED(status)) why = std::string("killed by signal: ") + strsignal(WTERMSIG(status));
  std::replace(why.begin(), why.end(), '\n', ' ');
  throw RunError(pool.name(child.task) + ": " + why);
}

}  // namespace

std::vector<std::string> run_all(const ProcessPool& pool, std::size_t tasks) {
  std::vector<std::string> answers(tasks);
  Children children;
  std::size_t next = 0;
  std::size_t done = 0;
  std::size_t failed_task = tasks;  // the first that failed so far; tasks after it no longer matter
  std::exception_ptr failure;
  const auto undecided = [&] {
    const auto& running = children.running;
    return std::any_of(running.begin(), running.end(), [&](const Child& child) { return child.task < failed_task; });
  };
  while (next < failed_task || undecided()) {
    while (next < failed_task && children.running.size() < std::max<std::size_t>(1, pool.jobs)) {
      children.running.push_back(start(pool, next, children));
      ++next;
    }
    std::vector<pollfd> waits;
    for (const Child& child : children.running) waits.push_back({child.pipe, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 100);
    for (std::size_t i = waits.size(); i-- > 0;) {
      if (waits[i].revents == 0 || !read_some(children.running[i])) continue;
      Child child = std::move(children.running[i]);
      children.running.erase(children.running.begin() + static_cast<std::ptrdiff_t>(i));
      try {
        reap(pool, child);
        answers[child.task] = std::move(child.answer);
        ++done;
      } catch (const std::runtime_error&) {
        if (child.task < failed_task) {
          failed_task = child.task;
          failure = std::current_exception();
        }
      }
    }
    pool.on_progress(done);
  }
  if (failure) std::rethrow_exception(failure);
  return answers;
}

}  // namespace kvlift::experiment
