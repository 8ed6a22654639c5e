// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/emitter.hpp"

#include <cstring>

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kRexB = 0x41;
constexpr std::uint8_t kRexW = 0x48;
constexpr std::uint8_t kRexWb = 0x49;
constexpr std::uint8_t kNop = 0x90;

constexpr std::uint8_t low_bits(Gpr reg) {
  return static_cast<std::uint8_t>(reg) & 7U;
}
constexpr bool extended(Gpr reg) {
  return static_cast<std::uint8_t>(reg) >= 8;
}

}  // namespace

void Emitter::bytes(std::span<const std::uint8_t> data) {
  code_.insert(code_.end(), data.begin(), data.end());
}

void Emitter::bytes(std::initializer_list<std::uint8_t> data) {
  code_.insert(code_.end(), data.begin(), data.end());
}

void Emitter::word32(std::uint32_t value) {
  std::uint8_t raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes(raw);
}

void Emitter::word64(std::uint64_t value) {
  std::uint8_t raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes(raw);
}

void Emitter::gs_operand(std::uint8_t opcode, Gpr reg, Slot slot, bool wide) {
  constexpr std::uint8_t kGs = 0x65;
  const auto rex = static_cast<std::uint8_t>((wide ? kRexW : 0x40U) | (extended(reg) ? 4U : 0U));
  // ModRM selects a SIB byte, which has neither base nor index: a plain 32-bit displacement.
  const auto modrm = static_cast<std::uint8_t>((static_cast<unsigned>(low_bits(reg)) << 3U) | 4U);
  bytes({kGs, rex, opcode, modrm, 0x25});
  word32(static_cast<std::uint32_t>(slot));
}

void Emitter::store(Slot slot, Gpr reg) {
  gs_operand(0x89, reg, slot, true);
}
void Emitter::load(Gpr reg, Slot slot) {
  gs_operand(0x8b, reg, slot, true);
}
void Emitter::load32(Gpr reg, Slot slot) {
  gs_operand(0x8b, reg, slot, false);
}

void Emitter::store_value(Slot slot, std::uint32_t value) {
  bytes({0x65, 0x48, 0xc7, 0x04, 0x25});
  word32(static_cast<std::uint32_t>(slot));
  word32(value);
}

void Emitter::exchange_rcx(Slot slot) {
  gs_operand(0x87, Gpr::kRcx, slot, true);
}

void Emitter::jump_through(Slot slot) {
  bytes({0x65, 0xff, 0x24, 0x25});
  word32(static_cast<std::uint32_t>(slot));
}

void Emitter::subtract_from_rcx(std::uint8_t value) {
  bytes({0x48, 0x8d, 0x49, static_cast<std::uint8_t>(0 - value)});
}

void Emitter::add_errno_to_rax_to_rcx(std::uint8_t number) {
  bytes({0x48, 0x8d, 0x48, number});
}

void Emitter::count_rdx_down() {
  bytes({0x48, 0x8d, 0x52, 0xff});
}

void Emitter::move_to_rcx(Gpr reg) {
  const auto modrm = static_cast<std::uint8_t>(0xc1U | static_cast<unsigned>(low_bits(reg)) << 3U);
  bytes({static_cast<std::uint8_t>(0x48U | (extended(reg) ? 4U : 0U)), 0x89, modrm});
}

void Emitter::load_rcx_at_rcx(std::uint8_t skip) {
  bytes({0x48, 0x8b, 0x49, skip});
}

void Emitter::pause() {
  bytes({0xf3, 0x90});
}

std::uint32_t Emitter::jump_if_rcx_zero() {
  bytes({0xe3});
  return open_rel8();
}

void Emitter::load_rcx_high_half(Slot slot) {
  bytes({0x65, 0x8b, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(slot) + 4);
}

void Emitter::load_rcx_high_byte(Slot slot) {
  bytes({0x65, 0x0f, 0xb6, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(slot) + 7);
}

void Emitter::load_rcx_at_r10(std::uint8_t skip) {
  bytes({0x49, 0x8b, 0x4a, skip});
}

void Emitter::advance_r10(std::uint8_t by) {
  bytes({0x4d, 0x8d, 0x52, by});
}

void Emitter::subtract_from_r10_to_rcx(std::uint64_t value) {
  const std::uint64_t distance = 0 - value;
  if (fits_int32(distance)) {
    bytes({0x49, 0x8d, 0x8a});  // lea rcx, [r10+disp32]
    word32(static_cast<std::uint32_t>(distance));
    return;
  }
  move(Gpr::kRcx, distance);
  bytes({0x4a, 0x8d, 0x0c, 0x11});  // lea rcx, [rcx+r10]
}

void Emitter::load_rcx_at_rsi() {
  bytes({0x48, 0x8b, 0x0e});
}

void Emitter::load_rcx_second_byte(Slot slot) {
  bytes({0x65, 0x0f, 0xb6, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(slot) + 1);
}

void Emitter::load_rcx_word(Slot slot) {
  bytes({0x65, 0x0f, 0xb7, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(slot));
}

void Emitter::load_rcx_from_table(TraceeAddr table) {
  bytes({0x48, 0x8b, 0x0c, 0xcd});
  word32(static_cast<std::uint32_t>(table.value()));
}

void Emitter::load_r11_at_rsp_r10() {
  bytes({0x4e, 0x8b, 0x1c, 0x14});
}

void Emitter::store_r11_at_r10(Slot slot) {
  bytes({0x65, 0x4d, 0x89, 0x9a});
  word32(static_cast<std::uint32_t>(slot));
}

void Emitter::move_rsp_to_r10() {
  bytes({0x49, 0x89, 0xe2});
}

void Emitter::next_entry_to_rcx() {
  bytes({0x49, 0x8d, 0x4b, kLogEntryBytes});
}

void Emitter::load_rcx_second_word(Slot slot) {
  bytes({0x65, 0x0f, 0xb7, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(slot) + 2);
}

void Emitter::move_eax_to_rcx() {
  bytes({0x89, 0xc1});
}

void Emitter::subtract_from_eax_to_rcx(std::uint32_t value) {
  bytes({0x8d, 0x88});
  word32(0 - value);
}

void Emitter::subtract_from_rsi_to_rcx(std::uint32_t value) {
  bytes({0x48, 0x8d, 0x8e});
  word32(0 - value);
}

void Emitter::subtract_from_esi_to_rcx(std::uint32_t value) {
  bytes({0x8d, 0x8e});
  word32(0 - value);
}

void Emitter::add_rdi_to_rcx() {
  bytes({0x48, 0x8d, 0x0c, 0x39});
}

void Emitter::add_rsi_less_one_to_rcx() {
  bytes({0x48, 0x8d, 0x4c, 0x31, 0xff});
}

void Emitter::move_byte_to_rcx(Gpr reg) {
  // Always with a REX prefix, whatever the register.
  const auto modrm = static_cast<std::uint8_t>(0xc8U | low_bits(reg));
  bytes({static_cast<std::uint8_t>(0x40U | (extended(reg) ? 1U : 0U)), 0x0f, 0xb6, modrm});
}

void Emitter::move_second_byte_to_rcx(Gpr reg) {
  const auto modrm = static_cast<std::uint8_t>(0xc1U | static_cast<unsigned>(low_bits(reg)) << 3U);
  bytes({0x89, modrm, 0x0f, 0xb6, 0xcd});
}

void Emitter::look_up_rcx(std::uint64_t table) {
  bytes({0x0f, 0xb6, 0x89});
  word32(static_cast<std::uint32_t>(table));
}

void Emitter::subtract_from_rdi_to_rcx(std::uint32_t value) {
  bytes({0x8d, 0x8f});
  word32(0 - value);
}

void Emitter::move(Gpr reg, std::uint64_t value) {
  const auto opcode = static_cast<std::uint8_t>(0xb8U | low_bits(reg));
  if (value <= 0xffff'ffffU) {
    if (extended(reg)) bytes({kRexB});
    bytes({opcode});
    word32(static_cast<std::uint32_t>(value));
    return;
  }
  bytes({extended(reg) ? kRexWb : kRexW, opcode});
  word64(value);
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

void Emitter::log_store(std::uint32_t exit_id) {
  bytes({0x41, 0xc7, 0x03});
  word32(exit_id);
}

void Emitter::log_advance() {
  bytes({0x4d, 0x8d, 0x5b, kLogEntryBytes});
}

void Emitter::table_index() {
  bytes({0x41, 0x0f, 0xb7, 0xca});
}

void Emitter::table_index(TraceeAddr mask) {
  bytes({0xc4, 0xe2, 0x2a, 0xf5, 0x0c, 0x25});
  word32(static_cast<std::uint32_t>(mask.value()));
}

void Emitter::table_jump(TraceeAddr table) {
  bytes({0xff, 0x24, 0xcd});
  word32(static_cast<std::uint32_t>(table.value()));
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
