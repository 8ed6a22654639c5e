#pragma once
/// @file
/// What the tracing thread sleeps on: children, and the kernel's buffers of threads of which
/// somebody wants every record.

#include <map>
#include <vector>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

class WakeUps {
 public:
  /// `child_fd` is borrowed. Throws std::system_error.
  explicit WakeUps(int child_fd);

  /// Readable when a child has news, or a buffer wants to be read.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  /// From now on the thread's buffer counts, until forget(), or until the kernel says that nothing
  /// will come any more. Watched buffers are also to be read every now and then.
  void watch(pid_t tid, int fd);
  void forget(pid_t tid);
  /// Threads whose buffers are to be read now. Costs nothing while none is watched.
  std::vector<pid_t> take();

 private:
  void set_timer();
  void end(pid_t tid);

  UniqueFd epoll_;
  UniqueFd timer_;
  std::map<pid_t, int> watched_;
};

}  // namespace backtrail::tracee
