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
/// r10 is the index in the ring while values are recorded.
constexpr std::uint16_t kRecordable = static_cast<std::uint16_t>(~set_of(Gpr::kR10));
constexpr unsigned kRegisters = 16;
constexpr std::uint8_t kFsPrefix = 0x64;

/// Returns the operand `bytes` further on; nullopt if its distance has no encoding then.
std::optional<Memory> moved(Memory at, unsigned bytes) {
  const std::int64_t distance = std::int64_t{at.displacement} + bytes;
  if (!fits_int32(static_cast<std::uint64_t>(distance))) return std::nullopt;
  at.displacement = static_cast<std::int32_t>(distance);
  if (distance != static_cast<std::int8_t>(distance)) at.displacement_bytes = 4;
  return at;
}

std::uint8_t part_bytes(const StoredPlace& place) {
  return std::min(place.bytes, static_cast<std::uint8_t>(kValueBytes));
}
unsigned parts_of(const StoredPlace& place) {
  return place.bytes / part_bytes(place);
}

/// Returns true if all parts can be loaded while r10 is the index in the ring, or there is only
/// one.
bool can_record(const StoredPlace& place) {
  if (place.bytes == 0 || place.is_relative) return place.bytes != 0;
  return moved(place.at, place.bytes) && (parts_of(place) == 1 || !place.uses(Gpr::kR10));
}

}  // namespace

void ValueRecorder::record(TraceeAddr pc, std::span<const Gpr> regs) {
  writer_.open_values(pc, regs.size());
  writer_.set_recording(true);
  writer_.mark(pc);
  std::size_t more = 0;
  for (const Gpr reg : regs) writer_.emit().store(writer_.next_value(more++), reg);
  for (const Gpr reg : regs) writer_.note_value(pc, static_cast<ValueKind>(reg));
  writer_.set_recording(false);
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
  const ValueRegisters& of = registers_of(insn);
  const unsigned worth = of.of_stores | of.lost_stack | unrelated_ | (old_bytes_ ? of.lost : 0U);
  const auto wanted = static_cast<std::uint16_t>(worth & kRecordable & ~recorded_);
  if (wanted != 0) {
    recorded_ = static_cast<std::uint16_t>(recorded_ | wanted);
    std::array<Gpr, kRegisters> regs{};
    std::size_t count = 0;
    for (unsigned i = 0; i < kRegisters; ++i) {
      if ((wanted >> i & 1U) != 0) regs.at(count++) = static_cast<Gpr>(i);
    }
    if ((wanted & set_of(Gpr::kR11)) != 0) writer_.open_r11(insn.pc);
    if ((wanted & set_of(Gpr::kRcx)) != 0) writer_.open_rcx(insn.pc);
    record(insn.pc, std::span{regs}.first(count));
  }
  if (old_bytes_ && can_record(of.stored)) record_old(insn, of.stored);
}

void ValueRecorder::free_r11(TraceeAddr pc, bool with_value) {
  if (with_value) writer_.open_r11(pc);
  writer_.save_log(pc);
  writer_.put_r11_away(pc);
}

void ValueRecorder::load(Gpr reg, const Memory& from, unsigned bytes) {
  Emitter& emit = writer_.emit();
  switch (bytes) {
    case 8:
      return emit.load(reg, from);
    case 4:
      return emit.load32(reg, from);
    case 2:
      return emit.load16(reg, from);
    default:
      return emit.load8(reg, from);
  }
}

void ValueRecorder::load_part(const SourceInsn& insn, const StoredPlace& place, OldBytes part) {
  Emitter& emit = writer_.emit();
  const auto distance = static_cast<unsigned>(part.part * kValueBytes);
  if (place.is_relative) {
    emit.move(Gpr::kR11, insn.target.value() + distance);
    return load(Gpr::kR11, Memory::at(Gpr::kR11), part.size);
  }
  // The part before has overwritten it.
  if (part.part != 0 && place.uses(Gpr::kR11)) emit.load(Gpr::kR11, Slot::kR11);
  if (place.is_fs) emit.bytes({kFsPrefix});
  load(Gpr::kR11, moved(place.at, distance).value_or(place.at), part.size);
}

void ValueRecorder::record_old(const SourceInsn& insn, const StoredPlace& place) {
  const unsigned parts = parts_of(place);
  const bool in_r10 = place.uses(Gpr::kR10);
  if (in_r10) writer_.open_r10(insn.pc);
  free_r11(insn.pc, place.uses(Gpr::kR11));
  if (!in_r10) writer_.open_values(insn.pc, parts);
  writer_.set_recording(true);
  writer_.mark(insn.pc);
  for (unsigned i = 0; i < parts; ++i) {
    load_part(insn, place, {static_cast<std::uint8_t>(i), part_bytes(place)});
    if (in_r10) writer_.open_values(insn.pc, parts);
    writer_.emit().store(writer_.next_value(i), Gpr::kR11);
  }
  for (unsigned i = 0; i < parts; ++i) {
    writer_.note_value(insn.pc, kind_of({static_cast<std::uint8_t>(i), part_bytes(place)}));
  }
  writer_.set_recording(false);
}

void ValueRecorder::after(const SourceInsn& insn) {
  if (!on_) return;
  const ValueRegisters& of = registers_of(insn);
  const bool follows = of.follows_from && (*of.follows_from & ~recorded_) == 0;
  recorded_ =
      static_cast<std::uint16_t>(follows ? recorded_ | of.written : recorded_ & ~of.written);
  unrelated_ = static_cast<std::uint16_t>((unrelated_ & ~of.written) | of.unrelated);
}

void ValueRecorder::before_handler_return(const SourceInsn& call) {
  constexpr std::array kStack{Gpr::kRsp};
  if (on_) record(call.pc, kStack);
}

void ValueRecorder::before_call(const SourceInsn& call) {
  if (!on_) return;
  std::array<Gpr, kSyscallInputs.size()> inputs{};
  std::ranges::transform(kSyscallInputs, inputs.begin(),
                         [](const auto& input) { return static_cast<Gpr>(input.encoding); });
  Emitter& emit = writer_.emit();
  writer_.mark(call.pc);
  emit.load16(Gpr::kR11, Memory::of(Slot::kValues));
  std::size_t more = 0;
  for (const Gpr reg : inputs) emit.store(Memory::value(Gpr::kR11, more++), reg);
  emit.lea32(Gpr::kR11, Memory::at(Gpr::kR11, static_cast<std::int8_t>(more)));
  emit.store16(Memory::of(Slot::kValues), Gpr::kR11);
  for (const Gpr reg : inputs) writer_.note_counted(call.pc, static_cast<ValueKind>(reg));
}

void ValueRecorder::after_call(TraceeAddr pc) {
  constexpr std::array kResult{Gpr::kRax};
  if (!on_) return;
  record(pc, kResult);
}

}  // namespace backtrail::arch::x86::translate
