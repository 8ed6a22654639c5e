// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps apart the program's trap flag and the one that the kernel sets for steps.
///
/// A program may set the flag itself and then traps after each of its instructions. After POPF and
/// IRET, Linux takes the flag that it sets for a step for the program's; after rt_sigreturn, it
/// takes the program's for its own (arch/x86/kernel/step.c, enable_single_step; kernel/ptrace.c,
/// set_flags). Flags pushed by a stepped PUSHF, and r11 after a stepped SYSCALL, show the step's
/// flag (SDM vol. 2, "SYSCALL": RFLAGS is saved into R11).

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"

namespace backtrail::tracee {

class Thread;

class TrapFlag {
 public:
  /// Call before stepping the instruction at `pc`; `insn` holds its first bytes.
  void before_step(Thread& thread, TraceeAddr pc, std::span<const std::uint8_t> insn);
  /// Call before a step; reads the instruction from memory.
  void before_step(Thread& thread);
  /// Call before resuming an interrupted step, so that it still counts as a step.
  void before_going_on();
  /// Call when the thread is resumed.
  void running();
  /// Call at each stop. Afterwards the registers, the frame of a handler just entered and flags
  /// just pushed show the program's own flag. Returns true if a SIGTRAP at this stop is one that
  /// the program asked for. Repeated calls at one stop return the same.
  bool after_stop(Thread& thread);
  /// Overrides the result of after_stop() for this stop.
  void set_own_trap(bool own) { own_trap_ = own; }
  /// Where the handler returns to that the thread has entered, if after_stop() knows it.
  [[nodiscard]] std::optional<TraceeAddr> handler_returns_to() const { return returns_to_; }
  /// Returns true if the thread was last resumed for a step.
  [[nodiscard]] bool stepping() const { return stepping_.has_value(); }

 private:
  void enter_handler(Thread& thread);
  void settle_step(Thread& thread);
  static void clear_pushed(Thread& thread, TraceeAddr flags);
  /// Returns true if it changed `regs`.
  static bool clear_saved_by_call(arch::cpu::UserRegs& regs);

  bool set_ = false;
  std::optional<TraceeAddr> stepping_;  ///< pc before the step; nullopt if there is no step.
  bool announced_ = false;              ///< The next resume executes that step.
  bool call_ = false;           ///< The stepped instruction is SYSCALL, which masks the flag.
  bool pushes_ = false;         ///< The stepped instruction pushes the flags.
  std::optional<bool> popped_;  ///< Value that the stepped instruction sets the flag to, if known.
  /// The frame of a handler that the step enters will hold `stepping_` and no trap flag: no system
  /// call is to be repeated, and only after POPF or IRET Linux saves a flag of its own.
  bool frame_is_known_ = false;
  bool flags_popped_ = false;  ///< The thread has been stepped over POPF or IRET.
  std::optional<TraceeAddr> returns_to_;
  bool settled_ = true;
  bool own_trap_ = false;
};

}  // namespace backtrail::tracee
