// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A small assembler for the few instructions that the translator adds to the program's.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/memory_operand.hpp"

namespace backtrail::arch::x86::translate {

/// Emits code for a known address. None of these instructions changes a flag.
class Emitter {
 public:
  explicit Emitter(TraceeAddr base) : base_{base} {}

  [[nodiscard]] std::uint32_t offset() const { return static_cast<std::uint32_t>(size_); }
  [[nodiscard]] TraceeAddr here() const { return base_ + size_; }
  /// Makes room for some code. The memory of `reused` is used, its contents are not.
  void reserve(std::size_t bytes, std::vector<std::uint8_t>&& reused) {
    code_ = std::move(reused);
    code_.resize(std::max(bytes, code_.capacity()));
  }
  [[nodiscard]] std::vector<std::uint8_t> take() {
    code_.resize(size_);
    return std::move(code_);
  }

  void bytes(std::span<const std::uint8_t> data) { put(data.data(), data.size()); }
  void bytes(std::initializer_list<std::uint8_t> data) { put(data.begin(), data.size()); }
  /// Copies the first `length` of the bytes.
  template <std::size_t kSize>
  void first_bytes(const std::array<std::uint8_t, kSize>& data, std::size_t length) {
    // All are copied: a constant number takes two moves.
    if (code_.size() - size_ < kSize) grow(kSize);
    std::memcpy(code_.data() + size_, data.data(), kSize);
    size_ += length;
  }
  void word32(std::uint32_t value) { put(&value, sizeof value); }
  void word64(std::uint64_t value) { put(&value, sizeof value); }

  /// mov dword [r11], id; lea r11, [r11+4]: writes a log entry.
  void log_entry(std::uint32_t id) {
    bytes({0x41, 0xc7, 0x03});
    word32(id);
    bytes({0x4d, 0x8d, 0x5b, kLogEntryBytes});
  }
  /// mov [memory], reg / mov reg, [memory]
  void store(const Memory& memory, Gpr reg) { wide(0x89, reg, memory); }
  void load(Gpr reg, const Memory& memory) { wide(0x8b, reg, memory); }
  void store(Slot slot, Gpr reg) { store(Memory::of(slot), reg); }
  void load(Gpr reg, Slot slot) { load(reg, Memory::of(slot)); }
  /// mov reg32, [memory] / movzx reg32, word [memory] / movzx reg32, byte [memory]
  void load32(Gpr reg, const Memory& memory) { narrow(0x8b, reg, memory); }
  void load16(Gpr reg, const Memory& memory) { narrow(0x0fb7, reg, memory); }
  void load8(Gpr reg, const Memory& memory) { narrow(0x0fb6, reg, memory); }
  /// mov [memory], reg16
  void store16(const Memory& memory, Gpr reg);
  /// lea reg, [memory] / lea reg32, [memory]
  void lea(Gpr reg, const Memory& memory) { wide(0x8d, reg, memory); }
  void lea32(Gpr reg, const Memory& memory) { narrow(0x8d, reg, memory); }
  /// xchg [memory], reg / jmp [memory]
  void exchange(const Memory& memory, Gpr reg) { wide(0x87, reg, memory); }
  void jump(const Memory& memory);
  /// mov qword [memory], value / mov dword [memory], value
  void store_value(const Memory& memory, std::uint32_t value);
  void store_value32(const Memory& memory, std::uint32_t value);
  /// mov to, from / mov to32, from32
  void move(Gpr to, Gpr from);
  void move32(Gpr to, Gpr from);
  /// movzx to32, low byte of from / movzx to32, low word of from
  void move8(Gpr to, Gpr from);
  void move16(Gpr to, Gpr from);
  /// mov ecx, reg (one of the first eight) / movzx ecx, ch
  void move_second_byte_to_rcx(Gpr reg);
  /// mov reg, value, in the shortest encoding.
  void move(Gpr reg, std::uint64_t value);
  /// rcx = r10 - value
  void subtract_from_r10_to_rcx(std::uint64_t value);
  /// pext ecx, r10d, [mask]
  void extract_r10_to_rcx(TraceeAddr mask);
  void pause();
  /// jrcxz rel8, forward; returns the offset of the rel8.
  std::uint32_t jump_if_rcx_zero();
  /// push value. A 64-bit value is pushed from a constant that finish() appends.
  void push(std::uint64_t value);
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
  /// Appends a few bytes.
  void put(const void* data, std::size_t count) {
    if (code_.size() - size_ < count) grow(count);
    std::memcpy(code_.data() + size_, data, count);
    size_ += count;
  }
  void grow(std::size_t count);
  struct Literal {
    std::uint32_t at = 0;  ///< Offset of the rel32 that refers to it.
    std::uint64_t value = 0;
  };
  /// Emit an instruction with a 64-bit or 32-bit operand size. An opcode above 255 has two bytes.
  void wide(std::uint32_t opcode, Gpr reg, const Memory& memory);
  void narrow(std::uint32_t opcode, Gpr reg, const Memory& memory);

  TraceeAddr base_;
  std::vector<std::uint8_t> code_;  ///< The code, and room for more.
  std::size_t size_ = 0;            ///< Bytes of code.
  std::vector<Literal> literals_;
};

/// Returns true if `value` fits a sign-extended 32-bit field.
[[nodiscard]] constexpr bool fits_int32(std::uint64_t value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(
             static_cast<std::int32_t>(static_cast<std::uint32_t>(value)))) == value;
}

}  // namespace backtrail::arch::x86::translate
