// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Encodes the few instructions that the translator adds to the program's.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/layout.hpp"

namespace backtrail::arch::x86::translate {

/// General registers, by their encoding.
enum class Gpr : std::uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};

/// Emits code for a known address. None of these instructions changes a flag.
class Emitter {
 public:
  explicit Emitter(TraceeAddr base) : base_{base} {}

  [[nodiscard]] std::uint32_t offset() const { return static_cast<std::uint32_t>(code_.size()); }
  [[nodiscard]] TraceeAddr here() const { return base_ + code_.size(); }
  void reserve(std::size_t bytes) { code_.reserve(bytes); }
  [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(code_); }

  void bytes(std::span<const std::uint8_t> data);
  void bytes(std::initializer_list<std::uint8_t> data);
  void word32(std::uint32_t value);
  void word64(std::uint64_t value);

  /// mov gs:[slot], reg / mov reg, gs:[slot]
  void store(Slot slot, Gpr reg);
  void load(Gpr reg, Slot slot);
  /// mov r32, gs:[slot]
  void load32(Gpr reg, Slot slot);
  /// mov qword gs:[slot], value / xchg gs:[slot], rcx / jmp gs:[slot]
  void store_value(Slot slot, std::uint32_t value);
  void exchange_rcx(Slot slot);
  void jump_through(Slot slot);
  /// lea rcx, [rcx-value] / lea rdx, [rdx-1] / mov rcx, rdx / pause
  void subtract_from_rcx(std::uint8_t value);
  /// lea rcx, [rax+number]: zero after a system call that failed with this errno.
  void add_errno_to_rax_to_rcx(std::uint8_t number);
  void count_rdx_down();
  void move_to_rcx(Gpr reg);
  void pause();
  /// mov rcx, [rcx+skip]
  void load_rcx_at_rcx(std::uint8_t skip);
  /// jrcxz rel8, forward; returns the offset of the rel8.
  std::uint32_t jump_if_rcx_zero();
  /// mov ecx, gs:[slot+4] / movzx ecx, byte gs:[slot+7]: the slot's high half and its highest byte.
  void load_rcx_high_half(Slot slot);
  void load_rcx_high_byte(Slot slot);
  /// mov rcx, [r10+skip] / lea r10, [r10+by]
  void load_rcx_at_r10(std::uint8_t skip);
  void advance_r10(std::uint8_t by);
  /// rcx = r10 - value
  void subtract_from_r10_to_rcx(std::uint64_t value);
  /// mov rcx, [rsi] / movzx ecx, byte gs:[slot+1]
  void load_rcx_at_rsi();
  void load_rcx_second_byte(Slot slot);
  /// movzx ecx, word gs:[slot] / mov rcx, [rcx*8+table]
  void load_rcx_word(Slot slot);
  void load_rcx_from_table(TraceeAddr table);
  /// mov r11, [rsp+r10] / mov gs:[slot+r10], r11
  void load_r11_at_rsp_r10();
  void store_r11_at_r10(Slot slot);
  /// mov r10, rsp / lea rcx, [r11+4]
  void move_rsp_to_r10();
  void next_entry_to_rcx();
  /// movzx ecx, word gs:[slot+2] / mov ecx, eax / lea ecx, [rax-value] / lea rcx, [rsi-value]
  void load_rcx_second_word(Slot slot);
  void move_eax_to_rcx();
  void subtract_from_eax_to_rcx(std::uint32_t value);
  void subtract_from_rsi_to_rcx(std::uint32_t value);
  void subtract_from_esi_to_rcx(std::uint32_t value);
  /// lea rcx, [rcx+rdi] / lea rcx, [rcx+rsi-1]
  void add_rdi_to_rcx();
  void add_rsi_less_one_to_rcx();
  /// movzx ecx, low byte of reg / movzx ecx, byte [rcx+table] / lea ecx, [rdi-value]
  void move_byte_to_rcx(Gpr reg);
  /// mov ecx, reg (one of the first eight) / movzx ecx, ch
  void move_second_byte_to_rcx(Gpr reg);
  void look_up_rcx(std::uint64_t table);
  void subtract_from_rdi_to_rcx(std::uint32_t value);
  /// mov reg, value, in the shortest encoding.
  void move(Gpr reg, std::uint64_t value);
  /// push value. A 64-bit value is pushed from a constant that finish() appends.
  void push(std::uint64_t value);
  /// mov dword [r11], exit_id / lea r11, [r11+4]
  void log_store(std::uint32_t exit_id);
  void log_advance();
  /// movzx ecx, r10w / pext ecx, r10d, [mask] / jmp [rcx*8+table]
  void table_index();
  void table_index(TraceeAddr mask);
  void table_jump(TraceeAddr table);
  /// jmp rel32 whose displacement lies within one cache line, so that it can be changed while
  /// threads run. Returns the displacement's offset.
  std::uint32_t jump(TraceeAddr target);
  /// Emits a rel32 for bind() to fill in; returns its offset.
  std::uint32_t open_rel32();
  /// Makes the rel32 at `at` lead here.
  void bind(std::uint32_t at);
  /// Makes the rel32 at `at` lead to an offset before this one.
  void bind_back(std::uint32_t at, std::uint32_t to);
  /// Emits a rel8 for bind8() to fill in; returns its offset.
  std::uint32_t open_rel8();
  /// jmp rel8 to an offset before this one.
  void jump_back(std::uint32_t to);
  void bind8(std::uint32_t at);
  /// Appends the constants of push().
  void finish();

 private:
  struct Literal {
    std::uint32_t at = 0;  ///< Offset of the rel32 that refers to it.
    std::uint64_t value = 0;
  };
  void gs_operand(std::uint8_t opcode, Gpr reg, Slot slot, bool wide);

  TraceeAddr base_;
  std::vector<std::uint8_t> code_;
  std::vector<Literal> literals_;
};

/// Returns true if `value` fits a sign-extended 32-bit field.
[[nodiscard]] constexpr bool fits_int32(std::uint64_t value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(
             static_cast<std::int32_t>(static_cast<std::uint32_t>(value)))) == value;
}

}  // namespace backtrail::arch::x86::translate
