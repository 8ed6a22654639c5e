// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which threads may share the tracing thread's CPU, unseen by their programs.

#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/wake_ups.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {

/// Counts stops for StopCpu, and sees to it that a process does not find out that an affinity is
/// narrowed: whatever shows it or hands it down is seen by the thread's source, or else stops the
/// thread before.
class CpuSharing {
 public:
  /// All arguments must outlive the object.
  CpuSharing(const EngineSettings& settings, StopCpu& stop_cpu, WakeUps& wake_ups)
      : settings_{settings}, stop_cpu_{stop_cpu}, wake_ups_{wake_ups} {}

  /// Counts a stop for a signal, if the client wants that (EngineSettings::follows_signals).
  void note_signal(Thread& thread);
  /// Counts a stop for the client's sake after which the thread runs on soon.
  void note_short_stop(Thread& thread);
  /// Counts the end of a client's step.
  void note_step(Thread& thread);
  /// Restores the affinities if no stop has come for 20 ms. Call whenever the engine has time.
  void look();
  /// Call before a thread runs on. Returns true if it must stop at its next system call, so that
  /// the narrowed affinity stays unseen.
  /// @param in_call The thread is inside a system call.
  bool hide(Thread& thread, bool step, bool in_call);

 private:
  const EngineSettings& settings_;
  StopCpu& stop_cpu_;
  WakeUps& wake_ups_;
};

}  // namespace backtrail::tracee
