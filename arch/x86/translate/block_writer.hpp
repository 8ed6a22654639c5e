// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes a superblock: its code, the pc map that goes with it, and its exits.

#include <cstdint>

#include "arch/x86/translate/emitter.hpp"
#include "arch/x86/translate/translator.hpp"

namespace backtrail::arch::x86::translate {

/// Where the program's values of the registers are that translated code uses itself.
struct RegisterPlaces {
  bool r10_live = false;       ///< The program's r10 is in the register.
  bool r10_dirty = false;      ///< The slot of r10 is older than the register.
  bool r11_live = false;       ///< The program's r11 is in the register.
  bool r11_dirty = false;      ///< The slot of r11 is older than the register.
  bool log_in_slot = false;    ///< The log pointer is in its slot and not in r11.
  bool rcx_in_slot = false;    ///< The program's rcx is in its slot and not in rcx.
  bool values_in_r10 = false;  ///< r10 is the index in Slot::kValues.
  bool is_recording = false;   ///< As PcMapEntry::is_recording.
  std::uint8_t values = 0;     ///< As PcMapEntry::values.

  /// Returns them as StateFlag bits.
  [[nodiscard]] std::uint8_t flags() const {
    const auto if_set = [](bool on, StateFlag flag) { return on ? unsigned{flag} : 0U; };
    return static_cast<std::uint8_t>(if_set(r10_live, kR10Live) | if_set(r11_live, kR11Live) |
                                     if_set(log_in_slot, kLogInSlot) |
                                     if_set(rcx_in_slot, kRcxInSlot));
  }
};

/// The code, the pc map and the exits of one superblock, as they grow. The parts of the Builder
/// share it: it is what keeps the pc map true, so whoever emits code that changes where the
/// program's state is calls mark() first.
///
/// `pc` is the program's pc while the emitted code runs, `more_flags` are StateFlag bits that
/// places() does not have, and `stack_add` is as in PcMapEntry.
class BlockWriter {
 public:
  /// Borrows `options`.
  BlockWriter(TraceeAddr start, const TranslateOptions& options);

  [[nodiscard]] Emitter& emit() { return emit_; }
  [[nodiscard]] std::uint32_t offset() const { return emit_.offset(); }
  [[nodiscard]] Superblock& block() { return block_; }
  [[nodiscard]] const Superblock& block() const { return block_; }
  [[nodiscard]] RegisterPlaces& places() { return places_; }
  /// Ends the superblock. Returns it.
  [[nodiscard]] Superblock finish();

  /// Adds a pc map entry: from here on the program's pc is `pc`.
  void mark(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  /// open_...() puts the program's value into the register, unless it is there; close_...() puts it
  /// into its slot, so that the register is free (r10) or holds the log pointer (r11). Values that
  /// were stored through r10 are counted first.
  void open_r10(TraceeAddr pc);
  void close_r10(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  void open_r11(TraceeAddr pc);
  void close_r11(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  void open_rcx(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  void close_rcx(TraceeAddr pc, std::int32_t stack_add = 0);
  /// Opens r10 and r11 as far as the instruction uses them.
  void open_for(const SourceInsn& insn) {
    if (insn.uses_r10) open_r10(insn.pc);
    if (insn.uses_r11) open_r11(insn.pc);
  }
  /// Puts the log pointer into its slot, so that r11 is free for the program's value.
  void save_log(TraceeAddr pc);
  /// Puts the program's r11 into its slot, but leaves the log pointer where it is.
  void put_r11_away(TraceeAddr pc);
  /// Call after emitting an instruction: notes which of r10, r11 and rcx it has written.
  void note_written(const SourceInsn& insn) {
    places_.r10_dirty |= insn.writes_r10;
    places_.r11_dirty |= insn.writes_r11;
    if (insn.sets_rcx) places_.rcx_in_slot = false;
  }
  /// Call after an instruction of the program: it belongs to the superblock.
  void note_translated(const SourceInsn& insn);
  /// Call when a branch is taken inside the superblock.
  void take_branch(TraceeAddr from, TraceeAddr to) {
    block_.branches.emplace_back(from, to);
    ++passed_;
  }
  /// Returns the number of branches taken before the code that comes next.
  [[nodiscard]] std::uint16_t passed() const { return passed_; }
  /// The code that comes next is reached from an earlier place, with the state that was there.
  void go_back(const RegisterPlaces& places, std::uint16_t passed, std::uint16_t values) {
    places_ = places;
    passed_ = passed;
    values_ = values;
  }
  /// Makes r10 the index in the ring from which next_value() counts, with room for `more` values.
  void open_values(TraceeAddr pc, std::size_t more);
  /// Returns where the next value goes, or the one that is `more` after it.
  [[nodiscard]] Memory next_value(std::size_t more = 0) const {
    return Memory::value(Gpr::kR10, places_.values + more);
  }
  /// Call when the emitted code has stored a value before the instruction at `pc` has begun.
  void note_value(TraceeAddr pc, ValueKind kind) {
    note_counted(pc, kind);
    ++places_.values;
  }
  /// Call when the emitted code has stored a value and advanced Slot::kValues.
  void note_counted(TraceeAddr pc, ValueKind kind);
  /// Call before and after emitting code that records values before an instruction.
  void set_recording(bool on) { places_.is_recording = on; }
  /// Counts the values that were stored through r10: they belong to the log from here on.
  void count_values(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  /// Returns the number of values recorded before the code that comes next.
  [[nodiscard]] std::uint16_t values() const { return values_; }
  /// Pushes the return address of a call.
  void push_return(const SourceInsn& call);

  /// Emits an exit that can be linked, or one to the CPU (kUntranslatable).
  void exit(Exit exit, TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  /// Emits the exit of an indirect branch, whose target is in r10.
  /// @param executed  As in Exit; 0: the branch is the newest instruction.
  void exit_indirectly(TraceeAddr from, std::int32_t stack_add, std::uint16_t executed = 0);
  /// Adds an exit to which the caller's code leads.
  void add_exit(const Exit& exit) { block_.exits.push_back(exit); }
  /// Sets the id of an exit that is to be added next, and what of it follows from the block.
  void give_id(Exit& exit) const;
  /// Puts the index of the target, which is in r10, into rcx.
  void index_table();

 private:
  void log(Exit& exit);

  const TranslateOptions& options_;
  Superblock block_;
  Emitter emit_;
  RegisterPlaces places_;
  std::uint16_t passed_ = 0;
  std::uint16_t values_ = 0;
};

}  // namespace backtrail::arch::x86::translate
