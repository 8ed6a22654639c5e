// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The code that records values (TranslateOptions::records_values).
///
/// A value is eight bytes. The first ones of a superblock go to the index in Slot::kValues, which
/// is in r10 meanwhile, and following places of the ring. Where r10 is needed for something else,
/// and at exits, the code advances Slot::kValues: only then the values count.

#include <cstdint>
#include <span>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/translate/value_registers.hpp"

namespace backtrail::arch::x86::translate {

/// Decides what a superblock records: registers that form the addresses of stores, once each after
/// they were written, those of system calls, a stack pointer that is lost, and registers that
/// follow from nothing; with TranslateOptions::records_old_bytes the bytes that stores overwrite,
/// too, and registers that pops overwrite. Does nothing unless TranslateOptions::records_values.
///
/// The load of old bytes may fault as the store would. The instruction has not begun then
/// (PcMapEntry::is_recording): it is left to the CPU, which raises the store's own fault.
class ValueRecorder {
 public:
  /// Borrows both.
  ValueRecorder(BlockWriter& writer, const TranslateOptions& options)
      : writer_{writer},
        on_{options.records_values},
        old_bytes_{options.records_values && options.records_old_bytes} {}

  /// Call before an instruction that is going to be copied: records the registers of its store, and
  /// what that overwrites. The registers that the instruction needs may have to be opened again.
  void before(const SourceInsn& insn);
  /// Call after each instruction of the program.
  void after(const SourceInsn& insn);
  /// Call before a system call, while r10 is open and r11 free: records the call's number and
  /// arguments.
  void before_call(const SourceInsn& call);
  /// Call before rt_sigreturn: records the stack pointer, by which the signal's frame is known.
  void before_handler_return(const SourceInsn& call);
  /// Call when a system call has returned and `pc` comes next: records its result.
  void after_call(TraceeAddr pc);

 private:
  /// Decodes each instruction once, although before() and after() ask.
  const ValueRegisters& registers_of(const SourceInsn& insn);
  void record(TraceeAddr pc, std::span<const Gpr> regs);
  void record_old(const SourceInsn& insn, const StoredPlace& place);
  /// r11 becomes free, although it may still hold the program's value.
  void free_r11(TraceeAddr pc, bool with_value);
  /// Loads a part of the old bytes into r11.
  void load_part(const SourceInsn& insn, const StoredPlace& place, OldBytes part);
  void load(Gpr reg, const Memory& from, unsigned bytes);

  BlockWriter& writer_;
  bool on_;
  bool old_bytes_;
  /// Registers, as a set, whose values follow from those that were recorded.
  std::uint16_t recorded_ = 0;
  /// Registers that have what follows from nothing.
  std::uint16_t unrelated_ = 0;
  TraceeAddr decoded_at_;  ///< The instruction that `decoded_` is of.
  ValueRegisters decoded_;
};

}  // namespace backtrail::arch::x86::translate
