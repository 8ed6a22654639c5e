// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The code that records values of registers (TranslateOptions::records_values).
///
/// A value is eight bytes at the address in Slot::kValues, which the code then advances. The store
/// of the value may fault, at the end of the memory for values: until Slot::kValues is advanced,
/// the value does not count, and the code may be repeated.

#include <cstdint>
#include <span>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/translate/value_registers.hpp"

namespace backtrail::arch::x86::translate {

/// Decides what a superblock records: registers that form the addresses of stores, once each after
/// they were written, and those of system calls. Does nothing unless
/// TranslateOptions::records_values.
class ValueRecorder {
 public:
  /// Borrows both.
  ValueRecorder(BlockWriter& writer, const TranslateOptions& options)
      : writer_{writer}, on_{options.records_values} {}

  /// Call before an instruction that is going to be copied: records the registers of its store.
  /// The registers that the instruction needs may have to be opened again.
  void before(const SourceInsn& insn);
  /// Call after each instruction of the program.
  void after(const SourceInsn& insn);
  /// Call before a system call, while r10 is open and r11 free: records the call's number and
  /// arguments.
  void before_call(const SourceInsn& call);
  /// Call when a system call has returned and `pc` comes next: records its result.
  void after_call(TraceeAddr pc);

 private:
  /// Decodes each instruction once, although before() and after() ask.
  const ValueRegisters& registers_of(const SourceInsn& insn);
  /// `through` is free and becomes the pointer. The registers hold the program's values.
  void record(TraceeAddr pc, std::span<const Gpr> regs, Gpr through);

  BlockWriter& writer_;
  bool on_;
  std::uint16_t recorded_ = 0;  ///< Registers, as a set, that were not written since.
  TraceeAddr decoded_at_;       ///< The instruction that `decoded_` is of.
  ValueRegisters decoded_;
};

}  // namespace backtrail::arch::x86::translate
