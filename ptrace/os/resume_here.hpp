// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lets traced threads go on where the tracing thread runs.

#include <optional>

#include <sched.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// The scheduler wakes a thread that is resumed on an idle CPU, if there is one. To keep it on the
/// tracing thread's own, its affinity is narrowed while it is resumed, and restored right after.
/// It may run in between, with the narrowed affinity, if it preempts the tracing thread. Called
/// from the tracing thread only.
class ResumeHere {
 public:
  /// Makes later objects narrow threads to this CPU; nullopt: they do nothing, as at first.
  static void use(std::optional<int> cpu);
  [[nodiscard]] static bool in_use();

  /// The thread is in a stop. Does nothing if it may not run on the CPU or if that is its only one.
  explicit ResumeHere(pid_t tid);
  ~ResumeHere();
  ResumeHere(const ResumeHere&) = delete;
  ResumeHere& operator=(const ResumeHere&) = delete;

 private:
  pid_t tid_;
  bool narrowed_ = false;
  cpu_set_t original_;  ///< The affinity to restore.
};

}  // namespace backtrail::tracee
