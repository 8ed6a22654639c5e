// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Knows when a process must find the affinities that it has set itself.

#include <set>

#include <sys/types.h>

namespace backtrail::tracee {

/// The affinity of a thread that gets signals all the time may be narrowed (CpuPin). The process
/// itself must not see that; other processes may.
class OwnAffinity {
 public:
  /// A thread is about to execute a call that shows an affinity or hands it down.
  void begin_call(pid_t tid) { calling_.insert(tid); }
  /// Call at the thread's next stop, and when it has ended.
  void end_call(pid_t tid) {
    if (!calling_.empty()) calling_.erase(tid);
  }
  /// Call after an exec: the threads that made calls are gone, but files may stay open.
  void forget_calls() { calling_.clear(); }
  /// The process has opened a file that shows affinities, and may read it at any time.
  void note_file() { has_file_ = true; }
  /// Returns true if an affinity of the process may be narrowed now.
  [[nodiscard]] bool may_be_narrowed() const { return calling_.empty() && !has_file_; }

 private:
  std::set<pid_t> calling_;
  bool has_file_ = false;
};

}  // namespace backtrail::tracee
