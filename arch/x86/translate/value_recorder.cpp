// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/value_recorder.hpp"

#include <algorithm>
#include <array>

#include "arch/x86/syscall_abi.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint16_t set_of(Gpr reg) {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(reg));
}
/// r10 is the pointer while values are recorded.
constexpr std::uint16_t kRecordable = static_cast<std::uint16_t>(~set_of(Gpr::kR10));
constexpr unsigned kRegisters = 16;

}  // namespace

void ValueRecorder::record(TraceeAddr pc, std::span<const Gpr> regs, Gpr through) {
  constexpr std::int8_t kValueBytes = sizeof(std::uint64_t);
  Emitter& emit = writer_.emit();
  writer_.mark(pc);
  emit.load(through, Slot::kValues);
  std::int8_t at = 0;
  for (const Gpr reg : regs) {
    emit.store(Memory::at(through, at), reg);
    at = static_cast<std::int8_t>(at + kValueBytes);
  }
  emit.lea(through, Memory::at(through, at));
  emit.store(Slot::kValues, through);
  for (const Gpr reg : regs) writer_.note_value(pc, reg);
}

const ValueRegisters& ValueRecorder::registers_of(const SourceInsn& insn) {
  if (insn.pc != decoded_at_) {
    decoded_ = value_registers(insn);
    decoded_at_ = insn.pc;
  }
  return decoded_;
}

void ValueRecorder::before(const SourceInsn& insn) {
  if (!on_) return;
  const auto wanted =
      static_cast<std::uint16_t>(registers_of(insn).of_stores & kRecordable & ~recorded_);
  if (wanted == 0) return;
  recorded_ = static_cast<std::uint16_t>(recorded_ | wanted);
  std::array<Gpr, kRegisters> regs{};
  std::size_t count = 0;
  for (unsigned i = 0; i < kRegisters; ++i) {
    if ((wanted >> i & 1U) != 0) regs.at(count++) = static_cast<Gpr>(i);
  }
  if ((wanted & set_of(Gpr::kR11)) != 0) writer_.open_r11(insn.pc);
  if ((wanted & set_of(Gpr::kRcx)) != 0) writer_.open_rcx(insn.pc);
  writer_.close_r10(insn.pc);
  record(insn.pc, std::span{regs}.first(count), Gpr::kR10);
}

void ValueRecorder::after(const SourceInsn& insn) {
  if (!on_) return;
  recorded_ = static_cast<std::uint16_t>(recorded_ & ~registers_of(insn).written);
}

void ValueRecorder::before_call(const SourceInsn& call) {
  if (!on_) return;
  std::array<Gpr, kSyscallInputs.size()> inputs{};
  std::ranges::transform(kSyscallInputs, inputs.begin(),
                         [](const auto& input) { return static_cast<Gpr>(input.encoding); });
  record(call.pc, inputs, Gpr::kR11);
}

void ValueRecorder::after_call(TraceeAddr pc) {
  constexpr std::array kResult{Gpr::kRax};
  if (!on_) return;
  writer_.close_r10(pc);
  record(pc, kResult, Gpr::kR10);
}

}  // namespace backtrail::arch::x86::translate
