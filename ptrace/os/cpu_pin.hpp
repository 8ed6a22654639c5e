// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Narrows the affinity of a thread to one CPU for a while (sched_setaffinity(2)).

#include <sched.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// The affinity of one thread, and whether it is narrowed. The destructor restores it. Called from
/// the tracing thread only.
class CpuPin {
 public:
  /// @param tid the thread, which may be another process's; 0: the calling thread
  explicit CpuPin(pid_t tid) : tid_{tid} {}
  ~CpuPin() { release(); }
  CpuPin(const CpuPin&) = delete;
  CpuPin& operator=(const CpuPin&) = delete;

  [[nodiscard]] pid_t tid() const { return tid_; }
  /// Returns the CPUs that the thread may use when it is not pinned; none if it is gone.
  [[nodiscard]] cpu_set_t allowed() const;
  /// Narrows the affinity to `cpu`. Returns false, and the thread is not pinned, if it may not run
  /// there or the kernel refuses.
  bool pin(int cpu);
  /// Restores the affinity. One that somebody else has set meanwhile stays.
  void release();
  /// Returns true while the affinity is narrowed. A thread that may use one CPU only needs no
  /// pinning: pin() then returns true and active() stays false.
  [[nodiscard]] bool active() const { return cpu_ >= 0; }

 private:
  pid_t tid_;
  int cpu_ = -1;          ///< The one CPU while active().
  cpu_set_t original_{};  ///< The affinity to restore.
};

}  // namespace backtrail::tracee
