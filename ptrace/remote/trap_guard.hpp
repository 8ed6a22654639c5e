// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps single steps from changing the program's mask and action for SIGTRAP.
///
/// The kernel forces the trap that ends a step: if the program blocks or ignores SIGTRAP, the
/// kernel unblocks the signal and resets its action (force_sig_info_to_task() in kernel/signal.c).

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "ptrace/tracee/trap_action.hpp"

namespace backtrail::tracee {

class Thread;

/// The steps of one thread. The mask is restored at once, the action before the program can notice.
class TrapGuard {
 public:
  /// Call before a step from a stop. `syscall`: the step is over a SYSCALL instruction.
  void before_step(Thread& thread, bool syscall);
  /// Call when the step has ended with its trap.
  void after_step(Thread& thread) { settle(thread, true); }
  /// Call if another event was reported first; the trap may have been forced even so. `moved`: the
  /// instruction was executed.
  void after_other_stop(Thread& thread, bool moved) { settle(thread, moved); }
  /// Call if the step ended at a signal handler, before its instruction.
  void disarm() { armed_ = false; }
  /// Call if the step ended with a SIGTRAP that is not a trap. Returns true if that signal was
  /// pending and blocked, and the trap was merged into it: the step has ended, and the signal has
  /// been sent again.
  bool swallowed_by_pending(Thread& thread);
  /// Call when an instruction of the recorder is about to trap, or has. `blocked`: the thread
  /// blocks the signal. The action is restored later.
  static void note_forced(Thread& thread, bool blocked);
  /// Finds out whether the program ignores the signal, if that is not known yet.
  static void learn_ignored(Thread& thread);
  /// Restores the action. Requires a stop from which the thread can make system calls.
  static void repair(Thread& thread);
  /// Restores the action from any stop, at a higher cost. For use when there may be no later
  /// chance.
  static void repair_from_any_stop(Thread& thread);

 private:
  [[nodiscard]] std::uint64_t mask_behind_call(Thread& thread, std::uint64_t mask);
  void settle(Thread& thread, bool executed);
  void correct_old_action(Thread& thread) const;

  bool armed_ = false;
  std::uint64_t before_ = 0;  ///< Signal mask before the step.
  std::uint64_t wanted_ = 0;
  std::optional<KernelSigaction> new_action_;
  /// Address at which rt_sigaction stores the old action for the program.
  std::optional<TraceeAddr> old_action_at_;
};

}  // namespace backtrail::tracee
