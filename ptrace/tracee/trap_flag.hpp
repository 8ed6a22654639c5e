#pragma once
/// @file
/// Whose the trap flag of a thread is.
///
/// A program may set it itself, and traps behind each of its instructions then. Linux takes the one
/// that it sets for a step for the program's behind POPF and IRET, and the program's for its own
/// behind rt_sigreturn (arch/x86/kernel/step.c, enable_single_step; kernel/ptrace.c, set_flags).

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Thread;

class TrapFlag {
 public:
  /// The thread is going to be stepped over this instruction, of which these are the first bytes.
  void before_step(Thread& thread, TraceeAddr pc, std::span<const std::uint8_t> insn);
  /// Likewise, reading it.
  void before_step(Thread& thread);
  /// It is going to be set going as it was last: a step that something came before is still one.
  void before_going_on();
  /// It is set going.
  void running();
  /// It has stopped: afterwards its registers, and the frame of a handler that it has entered, show
  /// the program's own flag. Returns whether a trap, if that is what it has stopped for, is one
  /// that the program has asked for; again, if asked again.
  bool after_stop(Thread& thread);
  /// It is known better.
  void set_own_trap(bool own) { own_trap_ = own; }
  /// Where the handler returns to that the thread has entered, if after_stop() knows it.
  [[nodiscard]] std::optional<TraceeAddr> handler_returns_to() const { return returns_to_; }
  /// The program has set it.
  [[nodiscard]] bool is_set() const { return set_; }

 private:
  void enter_handler(Thread& thread);
  void settle_step(Thread& thread);

  bool set_ = false;
  std::optional<TraceeAddr> stepping_;  ///< From there; nothing: it is not stepped.
  bool announced_ = false;              ///< The next time it is set going it is.
  bool call_ = false;                   ///< SYSCALL masks the flag while it is made.
  std::optional<bool> popped_;          ///< What the instruction is about to set it to.
  std::optional<TraceeAddr> returns_to_;
  bool settled_ = true;
  bool own_trap_ = false;
};

}  // namespace backtrail::tracee
