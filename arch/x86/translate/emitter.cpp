// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/emitter.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kNop = 0x90;
constexpr unsigned kRexW = 8;

constexpr unsigned low_bits(Gpr reg) {
  return static_cast<unsigned>(reg) & 7U;
}
constexpr unsigned high_bit(Gpr reg) {
  return static_cast<unsigned>(reg) >> 3U;
}

/// The bytes of one instruction.
struct Code {
  void add(unsigned byte) { bytes[count++] = static_cast<std::uint8_t>(byte); }
  void add_opcode(std::uint32_t opcode) {
    if (opcode > 0xff) add(opcode >> 8U);
    add(opcode & 0xffU);
  }
  void add_word32(std::uint32_t value) {
    std::memcpy(&bytes[count], &value, sizeof value);
    count += sizeof value;
  }
  [[nodiscard]] std::span<const std::uint8_t> view() const { return std::span{bytes}.first(count); }

  std::array<std::uint8_t, 16> bytes{};
  std::size_t count = 0;
};

/// Returns an instruction with `memory`, up to its displacement. `reg` is the ModRM byte's register
/// or a part of the opcode. Source: SDM vol. 2, "Instruction Format".
Code with_memory(unsigned rex, std::uint32_t opcode, unsigned reg, const Memory& memory) {
  constexpr unsigned kGs = 0x65;
  constexpr unsigned kSib = 4;
  constexpr unsigned kNoIndex = 4;
  constexpr unsigned kNoBase = 5;
  Code code;
  if (memory.is_gs) code.add(kGs);
  rex |= (reg >> 3U) << 2U;
  if (memory.index) rex |= high_bit(*memory.index) << 1U;
  if (memory.base) rex |= high_bit(*memory.base);
  if (rex != 0) code.add(0x40U | rex);
  code.add_opcode(opcode);
  const unsigned base = memory.base ? low_bits(*memory.base) : kNoBase;
  unsigned mode = 0;
  if (memory.base && memory.displacement_bytes != 0) mode = memory.displacement_bytes == 1 ? 1 : 2;
  const bool has_sib = !memory.base || memory.index || base == kSib;
  code.add(mode << 6U | (reg & 7U) << 3U | (has_sib ? kSib : base));
  if (has_sib) {
    const unsigned index = memory.index ? low_bits(*memory.index) : kNoIndex;
    code.add(static_cast<unsigned>(memory.scale_bits) << 6U | index << 3U | base);
  }
  const auto displacement = static_cast<std::uint32_t>(memory.displacement);
  if (memory.displacement_bytes == 1) code.add(displacement & 0xffU);
  if (memory.displacement_bytes == 4) code.add_word32(displacement);
  return code;
}

/// Returns an instruction with two registers, of which `rm` is the ModRM byte's operand.
Code with_registers(unsigned rex, std::uint32_t opcode, Gpr reg, Gpr rm) {
  Code code;
  rex |= high_bit(reg) << 2U | high_bit(rm);
  if (rex != 0) code.add(0x40U | rex);
  code.add_opcode(opcode);
  code.add(0xc0U | low_bits(reg) << 3U | low_bits(rm));
  return code;
}

}  // namespace

void Emitter::grow(std::size_t count) {
  constexpr std::size_t kLeast = 256;
  code_.resize(std::max({2 * code_.size(), size_ + count, kLeast}));
}

void Emitter::wide(std::uint32_t opcode, Gpr reg, const Memory& memory) {
  bytes(with_memory(kRexW, opcode, static_cast<unsigned>(reg), memory).view());
}

void Emitter::narrow(std::uint32_t opcode, Gpr reg, const Memory& memory) {
  bytes(with_memory(0, opcode, static_cast<unsigned>(reg), memory).view());
}

void Emitter::jump(const Memory& memory) {
  constexpr unsigned kExtension = 4;
  bytes(with_memory(0, 0xff, kExtension, memory).view());
}

void Emitter::store16(const Memory& memory, Gpr reg) {
  constexpr std::uint8_t kOperandSize = 0x66;
  bytes({kOperandSize});
  narrow(0x89, reg, memory);
}

void Emitter::store_value(const Memory& memory, std::uint32_t value) {
  Code code = with_memory(kRexW, 0xc7, 0, memory);
  code.add_word32(value);
  bytes(code.view());
}

void Emitter::store_value32(const Memory& memory, std::uint32_t value) {
  Code code = with_memory(0, 0xc7, 0, memory);
  code.add_word32(value);
  bytes(code.view());
}

void Emitter::move(Gpr to, Gpr from) {
  bytes(with_registers(kRexW, 0x89, from, to).view());
}

void Emitter::move32(Gpr to, Gpr from) {
  bytes(with_registers(0, 0x89, from, to).view());
}

void Emitter::move8(Gpr to, Gpr from) {
  // Without a REX prefix, four of the registers would be ah, ch, dh and bh.
  Code code;
  code.add(0x40U | high_bit(to) << 2U | high_bit(from));
  code.add_opcode(0x0fb6);
  code.add(0xc0U | low_bits(to) << 3U | low_bits(from));
  bytes(code.view());
}

void Emitter::move16(Gpr to, Gpr from) {
  bytes(with_registers(0, 0x0fb7, to, from).view());
}

void Emitter::move_second_byte_to_rcx(Gpr reg) {
  move32(Gpr::kRcx, reg);
  bytes({0x0f, 0xb6, 0xcd});
}

void Emitter::move(Gpr reg, std::uint64_t value) {
  Code code;
  const bool is_wide = value > 0xffff'ffffU;
  const unsigned rex = (is_wide ? kRexW : 0) | high_bit(reg);
  if (rex != 0) code.add(0x40U | rex);
  code.add(0xb8U | low_bits(reg));
  code.add_word32(static_cast<std::uint32_t>(value));
  if (is_wide) code.add_word32(static_cast<std::uint32_t>(value >> 32U));
  bytes(code.view());
}

void Emitter::subtract_from_r10_to_rcx(std::uint64_t value) {
  const std::uint64_t distance = 0 - value;
  if (fits_int32(distance)) {
    lea(Gpr::kRcx, Memory::far(Gpr::kR10, static_cast<std::int32_t>(distance)));
    return;
  }
  move(Gpr::kRcx, distance);
  lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kR10));
}

void Emitter::extract_r10_to_rcx(TraceeAddr mask) {
  bytes({0xc4, 0xe2, 0x2a, 0xf5, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(mask.value()));
}

void Emitter::pause() {
  bytes({0xf3, 0x90});
}

std::uint32_t Emitter::jump_if_rcx_zero() {
  bytes({0xe3});
  return open_rel8();
}

void Emitter::push(std::uint64_t value) {
  if (fits_int32(value)) {
    bytes({0x68});
    word32(static_cast<std::uint32_t>(value));
    return;
  }
  bytes({0xff, 0x35});
  literals_.push_back({offset(), value});
  word32(0);
}

std::uint32_t Emitter::jump(TraceeAddr target) {
  // The displacement begins one byte after the opcode.
  while ((here().value() + 1) % kCacheLineBytes > kCacheLineBytes - sizeof(std::uint32_t)) {
    bytes({kNop});
  }
  bytes({0xe9});
  const std::uint32_t at = offset();
  word32(static_cast<std::uint32_t>(target - (here() + sizeof(std::uint32_t))));
  return at;
}

std::uint32_t Emitter::open_rel32() {
  const std::uint32_t at = offset();
  word32(0);
  return at;
}

void Emitter::bind(std::uint32_t at) {
  const auto distance = static_cast<std::uint32_t>(offset() - (at + sizeof(std::uint32_t)));
  std::memcpy(&code_[at], &distance, sizeof distance);
}

void Emitter::bind_back(std::uint32_t at, std::uint32_t to) {
  const auto distance = static_cast<std::uint32_t>(to - (at + sizeof(std::uint32_t)));
  std::memcpy(&code_[at], &distance, sizeof distance);
}

std::uint32_t Emitter::open_rel8() {
  const std::uint32_t at = offset();
  bytes({0});
  return at;
}

void Emitter::bind8(std::uint32_t at) {
  code_[at] = static_cast<std::uint8_t>(offset() - (at + 1));
}

void Emitter::jump_back(std::uint32_t to) {
  constexpr std::uint32_t kJumpBytes = 2;
  bytes({0xeb, static_cast<std::uint8_t>(to - (offset() + kJumpBytes))});
}

void Emitter::finish() {
  for (const Literal& literal : literals_) {
    bind(literal.at);
    word64(literal.value);
  }
  literals_.clear();
}

}  // namespace backtrail::arch::x86::translate
