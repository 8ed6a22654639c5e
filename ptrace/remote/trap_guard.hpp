#pragma once
/// @file
/// Keeps single steps from changing what a program does with SIGTRAP.
///
/// The kernel forces the trap that ends a step: where the program blocks or ignores SIGTRAP it
/// unblocks the signal and resets its action (force_sig_info_to_task() in kernel/signal.c).

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "ptrace/tracee/trap_action.hpp"

namespace backtrail::tracee {

class Thread;

/// One thread's steps. The mask is put back at once, the action before anybody can notice.
class TrapGuard {
 public:
  /// The thread is about to be stepped from a stop. `syscall`: over a SYSCALL instruction.
  void before_step(Thread& thread, bool syscall);
  /// The step has ended in its trap.
  void after_step(Thread& thread) { settle(thread, true); }
  /// Something else was reported first; the trap may be there all the same. `moved`: the
  /// instruction was executed.
  void after_other_stop(Thread& thread, bool moved) { settle(thread, moved); }
  /// It has ended before its instruction, in a signal's handler.
  void disarm() { armed_ = false; }
  /// The step has ended in a SIGTRAP that is no trap. True when that signal was pending, blocked,
  /// and the trap was merged into it: it is pending again, and the step has ended.
  bool swallowed_by_pending(Thread& thread);
  /// An instruction of ours is about to trap, or has; `blocked`: although the thread blocks the
  /// signal. The action is put back later.
  static void note_forced(Thread& thread, bool blocked);
  /// Whether the program ignores the signal is known from now on.
  static void learn_ignored(Thread& thread);
  /// Puts the action back. The thread is in a stop from which it can make system calls.
  static void repair(Thread& thread);
  /// Dearer, when there may be no other occasion.
  static void repair_from_any_stop(Thread& thread);

 private:
  [[nodiscard]] std::uint64_t mask_behind_call(Thread& thread, std::uint64_t mask);
  void settle(Thread& thread, bool executed);
  void correct_old_action(Thread& thread) const;

  bool armed_ = false;
  std::uint64_t before_ = 0;  ///< Signal mask.
  std::uint64_t wanted_ = 0;
  std::optional<KernelSigaction> new_action_;
  /// Where the program wants to see what the action was.
  std::optional<TraceeAddr> old_action_at_;
};

}  // namespace backtrail::tracee
