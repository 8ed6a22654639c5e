// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Builds one superblock; see translator.hpp.

#include <optional>
#include <vector>

#include "arch/x86/translate/emitter.hpp"
#include "arch/x86/translate/translator.hpp"

namespace backtrail::arch::x86::translate {

/// Builds one superblock, once: it borrows `source` and `options`.
class Builder {
 public:
  Builder(const CodeSource& source, TraceeAddr start, const TranslateOptions& options);
  [[nodiscard]] std::variant<Superblock, UntranslatableReason> build();

 private:
  /// A branch out of the superblock, whose exit is emitted after its other code.
  struct SideExit {
    std::uint32_t rel32 = 0;
    SourceInsn insn;
    std::uint16_t passed = 0;
    std::uint16_t executed = 0;
    std::uint8_t state = 0;  ///< StateFlag bits.
    bool r10_dirty = false;
    bool r11_dirty = false;
    bool is_indirect = false;    ///< An indirect branch whose target, in r10, is not the
                                 ///< expected one.
    std::int32_t stack_add = 0;  ///< Stack adjustment of an indirect branch, in bytes.
    bool falls_through = false;  ///< The superblock follows the branch; this exit is the
                                 ///< fall-through.
    std::optional<std::uint32_t> failed_call = {};  ///< Number of a failed system call, or
                                                    ///< kNumberInSlot; nullopt for other exits.
  };

  [[nodiscard]] SourceInsn fetch(TraceeAddr pc) const;
  /// Fetches an instruction, and marks it as untranslatable if it belongs to an rseq critical
  /// section.
  [[nodiscard]] SourceInsn examine(TraceeAddr pc) const;
  // builder_check.cpp
  /// Reads the instructions of a checked superblock. Returns the reason if the first one is
  /// untranslatable, otherwise kNone.
  UntranslatableReason scan();
  void emit_check();
  void emit_stale_exit();
  [[nodiscard]] bool scanned_all() const {
    return options_.checked && block_.instructions == scanned_.size();
  }
  [[nodiscard]] bool limits_reached() const;
  /// Returns true if another superblock begins at the current pc.
  [[nodiscard]] bool joins() const;
  /// Returns true if the target of this jump or call gets a superblock of its own.
  [[nodiscard]] bool is_left_to_another(const SourceInsn& insn) const;
  [[nodiscard]] bool may_follow(TraceeAddr target) const;
  /// Emits one instruction; returns false if the superblock ends with it.
  bool step(const SourceInsn& insn);

  /// Adds a pc map entry: from here on the program's pc is `pc`.
  void mark(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  void open_r10(TraceeAddr pc);
  void close_r10(TraceeAddr pc, std::uint8_t more_flags = 0);
  void open_rcx(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  /// Moves the program's rcx to its slot, so that the register is free.
  void put_rcx_away(TraceeAddr pc, std::int32_t stack_add = 0);
  /// Call after emitting an instruction: notes which of r10, r11 and rcx it has written.
  void note_written(const SourceInsn& insn);
  void open_r11(TraceeAddr pc);
  void close_r11(TraceeAddr pc, std::uint8_t more_flags = 0, std::int32_t stack_add = 0);
  void save_log(TraceeAddr pc);

  void copy(const SourceInsn& insn);
  bool copy_relative(const SourceInsn& insn);
  void load_address(const SourceInsn& insn);
  /// Returns true if the branch mostly goes to `to` and the superblock may follow it.
  [[nodiscard]] bool goes_likely(const SourceInsn& insn, TraceeAddr to) const;
  void conditional_jump(const SourceInsn& insn);
  /// Returns true if the jump closes a loop of which another iteration should be unrolled.
  [[nodiscard]] bool may_unroll(const SourceInsn& insn) const;
  void jump_if_rcx_zero(const SourceInsn& insn);
  void loop(const SourceInsn& insn);
  bool follow(const SourceInsn& insn);
  void leave_for(const SourceInsn& insn);
  /// Emits an indirect jump or call; returns false if the superblock ends with it.
  bool indirect(const SourceInsn& insn);
  void load_target(const SourceInsn& insn);
  bool return_from(const SourceInsn& insn);
  /// Continues the superblock at `to`, and adds a side exit for when the target in r10 is not `to`.
  void follow_if(const SourceInsn& insn, TraceeAddr to, std::int32_t stack_add);
  void emit_ib_entry();
  /// Puts the index of the target, which is in r10, into rcx.
  void index_table();
  void finish_indirect(TraceeAddr from, std::int32_t stack_add, std::uint16_t executed = 0);
  enum class CallMade : std::uint8_t { kNot, kComesBack, kDoesNot };
  CallMade system_call(const SourceInsn& insn);
  void check_number(std::vector<std::uint32_t>& made, std::vector<std::uint32_t>& left);
  void check_futex(std::vector<std::uint32_t>& made);
  void return_from_handler(const SourceInsn& insn);
  void copy_frame();
  void check_call(const SourceInsn& insn, CallCheck check);
  void check_range(TraceeAddr pc, std::vector<std::uint32_t>& made,
                   std::vector<std::uint32_t>& left);
  void check_table(Policy part, std::vector<std::uint32_t>& made);
  void check_open(Gpr flags, std::vector<std::uint32_t>& made, std::vector<std::uint32_t>& left);
  void note_mask(std::vector<std::uint32_t>& made, std::vector<std::uint32_t>& left);
  void look_up(Policy part);
  void jump_to(std::vector<std::uint32_t>& places);
  void jump_if_rcx_zero_to(std::vector<std::uint32_t>& places);
  void unless_rcx_zero_to(std::vector<std::uint32_t>& places);

  // builder_exits.cpp
  void add_side_exit(const SourceInsn& insn, std::uint8_t more_flags = 0);
  void emit_failed_call(const SideExit& side);
  void emit_side_exits();
  void emit_exit(Exit exit, TraceeAddr pc, std::uint8_t more_flags = 0);
  void log(Exit& exit);
  void give_id(Exit& exit) const;
  void note_range(const SourceInsn& insn);

  const CodeSource& source_;
  const TranslateOptions& options_;
  Superblock block_;
  Emitter emit_;
  TraceeAddr pc_;
  UntranslatableReason left_for_ = UntranslatableReason::kNone;
  bool r10_live_ = false;
  bool r10_dirty_ = false;
  bool r11_live_ = false;
  bool r11_dirty_ = false;
  bool log_in_slot_ = false;
  bool rcx_in_slot_ = false;  ///< The program's rcx is in its slot and not in rcx.
  std::optional<std::uint32_t> eax_;
  std::vector<TraceeAddr> seen_;
  std::ptrdiff_t copies_ = 1;      ///< Number of times that the superblock may contain an
                                   ///< instruction: the iterations of an unrolled loop.
  std::vector<TraceeAddr> calls_;  ///< Return addresses of the calls that were followed.
  std::vector<SideExit> side_exits_;
  std::vector<SourceInsn> scanned_;
  std::vector<std::uint32_t> stale_jumps_;
};

}  // namespace backtrail::arch::x86::translate
