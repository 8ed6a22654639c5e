#pragma once
/// @file
/// What a leak check found, of which its process was let go.
///
/// LeakSanitizer starts a task of its own, which ptraces all threads, and waits for its end. So the
/// task is held at its end, when it has let them all go, until the thread that waits is seized
/// again: that one can then be asked whose code ends the process. Should it begin another check, it
/// is let go once more.

#include <functional>
#include <map>

#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::server {

class LeakWatch {
 public:
  /// Did the sanitizer's library end the process?
  using Told = std::function<void(pid_t pid, bool by_sanitizer, int exit_code)>;
  explicit LeakWatch(Told told) : told_{std::move(told)} {}

  /// The thread is about to make the system call that starts the task. It is stopped and alone is
  /// still traced; when this returns it has made the call, or has not, and may be let go. Where
  /// anything is other than expected nobody will be told.
  void begin(tracee::Thread& thread);
  /// A stop of a task that nobody else knows. True: of these, and it goes on.
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
  std::map<pid_t, Watched> threads_;   ///< Seized again, by id.
};

}  // namespace backtrail::server
