// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/value_registers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "arch/x86/translate/emitter.hpp"
#include "arch/x86/translate/zydis_decoder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

/// Returns the set of the general register that a register is part of; empty for others.
std::uint16_t register_set(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return 0;
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(whole - ZYDIS_REGISTER_RAX));
}

/// Returns the set of a few registers.
template <typename... Regs>
constexpr std::uint16_t set_of(Regs... regs) {
  return static_cast<std::uint16_t>(((1U << static_cast<unsigned>(regs)) | ...));
}
constexpr std::uint16_t kStackSet = set_of(Gpr::kRsp);
/// Functions restore them before they return.
constexpr std::uint16_t kRestoredSet =
    set_of(Gpr::kRbx, Gpr::kRbp, Gpr::kR12, Gpr::kR13, Gpr::kR14, Gpr::kR15);

bool is_frame(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_RBP;
}

/// Returns true if the old bytes follow from the new ones.
bool is_invertible(const ZydisDecodedInstruction& z,
                   std::span<const ZydisDecodedOperand> operands) {
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
      return true;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XOR:
      return operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    default:
      return false;
  }
}

/// Returns true if the old value of a register that the instruction writes follows: from the new
/// one, or because a function's beginning has saved it.
bool is_kept(const ZydisDecodedInstruction& z, std::span<const ZydisDecodedOperand> operands,
             const ZydisDecodedOperand& written) {
  if (is_invertible(z, operands) || z.mnemonic == ZYDIS_MNEMONIC_XCHG) return true;
  const bool is_hidden = written.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
      return false;
    case ZYDIS_MNEMONIC_LEA:
      return operands[1].mem.base == written.reg.value &&
             operands[1].mem.index == ZYDIS_REGISTER_NONE;
    default:
      return is_hidden;  // pushes, pops, calls
  }
}

/// Returns true if the result follows from the operands: a relation describes the instruction.
bool is_computed(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
      return true;
    default:
      return false;
  }
}

/// Returns true if a general register gets what no relation describes.
bool is_unrelated(const ZydisDecodedInstruction& z, std::span<const ZydisDecodedOperand> operands) {
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_XGETBV:
      return true;
    default:
      break;
  }
  return std::ranges::any_of(operands, [](const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    switch (ZydisRegisterGetClass(operand.reg.value)) {
      case ZYDIS_REGCLASS_XMM:
      case ZYDIS_REGCLASS_YMM:
      case ZYDIS_REGCLASS_ZMM:
      case ZYDIS_REGCLASS_MASK:
        return true;
      default:
        return false;
    }
  });
}

/// Returns ValueRegisters::follows_from.
std::optional<std::uint16_t> sources_of(const ZydisDecodedInstruction& z,
                                        std::span<const ZydisDecodedOperand> operands) {
  constexpr unsigned kPartialBits = 32;
  const auto& to = operands[0];
  if (!is_computed(z.mnemonic) || to.type != ZYDIS_OPERAND_TYPE_REGISTER ||
      register_set(to.reg.value) == 0) {
    return std::nullopt;
  }
  const bool clears = z.mnemonic == ZYDIS_MNEMONIC_XOR &&
                      operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                      operands[1].reg.value == to.reg.value && to.size >= kPartialBits;
  if (clears) return std::uint16_t{0};
  // A register of 8 or 16 bits keeps the rest.
  unsigned from = 0;
  if (to.size < kPartialBits) from = register_set(to.reg.value);
  for (const auto& operand : operands.first(z.operand_count_visible)) {
    const bool read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      if (read && register_set(operand.reg.value) == 0) return std::nullopt;
      if (read) from |= register_set(operand.reg.value);
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      if (operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN) return std::nullopt;
      from |= register_set(operand.mem.base);
      from |= register_set(operand.mem.index);
    }
  }
  return static_cast<std::uint16_t>(from);
}

std::optional<Gpr> whole_register(ZydisRegister reg) {
  if (reg < ZYDIS_REGISTER_RAX || reg > ZYDIS_REGISTER_R15) return std::nullopt;
  return static_cast<Gpr>(reg - ZYDIS_REGISTER_RAX);
}

/// Returns the operand in a form that the translator can emit; nullopt if there is none.
std::optional<Memory> memory_of(const ZydisDecodedOperandMem& mem) {
  Memory out{.base = whole_register(mem.base), .index = whole_register(mem.index)};
  if (mem.base != ZYDIS_REGISTER_NONE && !out.base) return std::nullopt;
  if (mem.index != ZYDIS_REGISTER_NONE && !out.index) return std::nullopt;
  if (out.index) out.scale_bits = static_cast<std::uint8_t>(std::countr_zero(unsigned{mem.scale}));
  const std::int64_t distance = mem.disp.value;
  if (!fits_int32(static_cast<std::uint64_t>(distance))) return std::nullopt;
  out.displacement = static_cast<std::int32_t>(distance);
  const bool is_short = out.base && distance == static_cast<std::int8_t>(distance);
  out.displacement_bytes = is_short ? 1 : 4;
  return out;
}

StoredPlace stored_place(const ZydisDecodedInstruction& z, const ZydisDecodedOperand& operand) {
  constexpr unsigned kByteBits = 8;
  constexpr unsigned kMostBytes = 64;
  const unsigned bytes = operand.size / kByteBits;
  const bool is_plain = std::has_single_bit(bytes) && bytes <= kMostBytes &&
                        operand.size % kByteBits == 0 && z.address_width == 64 &&
                        operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
  if (!is_plain) return {};
  const bool pops = z.mnemonic == ZYDIS_MNEMONIC_POP;
  if (pops && operand.mem.base == ZYDIS_REGISTER_RSP) return {};  // the new rsp
  const bool is_hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
  if (is_hidden && operand.mem.base == ZYDIS_REGISTER_RSP) {
    const bool pushes = z.mnemonic == ZYDIS_MNEMONIC_PUSH || z.mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
    return pushes && bytes == kPushedPlace.bytes ? kPushedPlace : StoredPlace{};
  }
  if (operand.mem.segment == ZYDIS_REGISTER_GS) return {};
  StoredPlace place{.at = {},
                    .is_relative = operand.mem.base == ZYDIS_REGISTER_RIP,
                    .is_fs = operand.mem.segment == ZYDIS_REGISTER_FS,
                    .bytes = static_cast<std::uint8_t>(bytes)};
  if (place.is_relative) return place.is_fs ? StoredPlace{} : place;
  const auto at = memory_of(operand.mem);
  if (!at) return {};
  place.at = *at;
  return place;
}

}  // namespace

ValueRegisters value_registers(const SourceInsn& insn) {
  ValueRegisters out;
  ZydisDecodedInstruction z;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis_decoder(), insn.bytes.data(), insn.length, &z,
                                           operands.data()))) {
    return out;
  }
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  out.follows_from = sources_of(z, std::span{operands});
  unsigned stores = 0;
  for (const auto& operand : std::span{operands}.first(z.operand_count)) {
    const bool written = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (!written) continue;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      const std::uint16_t reg = register_set(operand.reg.value);
      out.written |= reg;
      const bool pops = z.mnemonic == ZYDIS_MNEMONIC_POP;
      if (!is_kept(z, operands, operand)) {
        out.lost_stack |= reg & kStackSet;
        if (pops) out.lost |= reg & kRestoredSet;
      }
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
      continue;
    }
    if (!is_frame(operand.mem.base)) out.of_stores |= register_set(operand.mem.base);
    out.of_stores |= register_set(operand.mem.index);
    if ((z.attributes & kRepeats) != 0) {
      out.of_stores |= register_set(ZYDIS_REGISTER_RCX);
    } else if (!is_invertible(z, operands)) {
      out.stored = stores++ == 0 ? stored_place(z, operand) : StoredPlace{};
    }
  }
  if (out.written != 0 && is_unrelated(z, std::span{operands}.first(z.operand_count_visible))) {
    out.unrelated = out.written;
  }
  return out;
}

}  // namespace backtrail::arch::x86::translate
