// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Learns the result of a leak check in a process that was let go for it.
///
/// LeakSanitizer starts a task that ptraces all threads, and waits for its end. The task is held at
/// its end, when it has released the threads, until the waiting thread has been seized again. That
/// thread then shows whose code ends the process. If it begins another check, it is let go once
/// more.

#include <functional>
#include <map>

#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::server {

class LeakWatch {
 public:
  /// Called at the end; `by_sanitizer`: the sanitizer's library ended the process.
  using Told = std::function<void(pid_t pid, bool by_sanitizer, int exit_code)>;
  explicit LeakWatch(Told told) : told_{std::move(told)} {}

  /// Call when the thread is about to make the system call that starts the task; it must be stopped
  /// and the only one still traced. On return it has made the call, or failed to, and can be
  /// detached. If anything unexpected happens, Told is not called.
  void begin(tracee::Thread& thread);
  /// Handles a stop of a task that the engine does not know. Returns true if it is one of these; it
  /// then continues.
  bool on_stop(pid_t tid, const tracee::WaitStatus& status);

 private:
  struct Watched {
    pid_t pid = 0;
    pid_t thread = 0;
  };
  /// Finds the task that is started within the next `ends` ends of a system call.
  void hold_checker(const Watched& watched, int ends);
  void seize_again(const Watched& watched);
  void tell(const Watched& watched);

  Told told_;
  std::map<pid_t, Watched> checkers_;  ///< By the task's id.
  std::map<pid_t, Watched> threads_;   ///< Threads seized again, by id.
};

}  // namespace backtrail::server
