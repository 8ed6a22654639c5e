// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stops for signals, breakpoints, watchpoints and steps.

#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/cpu_sharing.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/thread_runner.hpp"

namespace backtrail::tracee {

/// Decides what a signal-delivery stop means, whether the client hears of it, and with which signal
/// the thread runs on.
class SignalStops {
 public:
  /// All arguments must outlive the object.
  SignalStops(const EngineSettings& settings, const BreakpointConditions& conditions,
              ThreadRunner& runner, CpuSharing& cpu_sharing)
      : settings_{settings}, conditions_{conditions}, runner_{runner}, cpu_sharing_{cpu_sharing} {}

  void handle(Thread& thread, int signal);
  /// Returns true if the signal is passed on without a report. False for SIGTRAP, whose stops also
  /// mean breakpoints and steps, and for a fault at a breakpoint: the thread was to stop there, but
  /// the memory is not executable. A function that gdb calls returns to such a breakpoint on the
  /// stack.
  [[nodiscard]] bool is_passed(Thread& thread, int signal) const;

 private:
  void pass_or_post(Thread& thread, int signal);
  void handle_trap(Thread& thread);
  void handle_breakpoint_insn(Thread& thread);
  bool handle_debug_registers(Thread& thread);
  void handle_step_done(Thread& thread);

  const EngineSettings& settings_;
  const BreakpointConditions& conditions_;
  ThreadRunner& runner_;
  CpuSharing& cpu_sharing_;
};

}  // namespace backtrail::tracee
