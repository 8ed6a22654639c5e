// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Emits the test whether translated code makes a system call itself.

#include <cstdint>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/rcx_tests.hpp"

namespace backtrail::arch::x86::translate {

/// A check of one system call by its arguments, and by its number if that is not known before.
class CallChecker {
 public:
  /// Borrows both. `options` has the check of each call.
  CallChecker(BlockWriter& writer, const TranslateOptions& options)
      : writer_{writer},
        emit_{writer.emit()},
        options_{options},
        tests_{writer.emit(), options.table} {}

  /// Emits the check, with an exit for a call that is left to the CPU. The code after it runs if
  /// the call is made, and r10 and rcx hold the program's values there. r10 must be open. Call
  /// once.
  void emit(const SourceInsn& insn, CallCheck check);

 private:
  // Each of them adds jumps to made_ and left_. It falls through if the call is left to the
  // CPU.
  void test(TraceeAddr pc, CallCheck check);
  void number(TraceeAddr pc);
  void futex();
  void range(TraceeAddr pc);
  void open(TraceeAddr pc, Gpr path, Gpr flags);
  void end_of_path(TraceeAddr pc, Gpr path);
  void signal_mask();
  void action();
  void limit();
  void rseq();
  void trace();
  void made_if_null(Gpr argument);
  void made_by_table(Policy part) { by_table(part, made_); }

  /// Goes on only if the protection in rdx does not make memory executable.
  void unless_executable();
  /// Goes on also if it is that of code which the program cannot write.
  void unless_writable_code();
  void by_table(Policy part, OpenJumps& jumps);

  BlockWriter& writer_;
  Emitter& emit_;
  const TranslateOptions& options_;
  RcxTests tests_;
  OpenJumps made_;  ///< Jumps to where the call is made.
  OpenJumps left_;  ///< Jumps to the exit.
};

}  // namespace backtrail::arch::x86::translate
