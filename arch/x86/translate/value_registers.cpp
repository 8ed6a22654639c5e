// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/value_registers.hpp"

#include <array>
#include <span>

#include "arch/x86/translate/zydis_decoder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

/// Returns the set of the general register that a register is part of; empty for others.
std::uint16_t register_set(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return 0;
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(whole - ZYDIS_REGISTER_RAX));
}

bool is_frame(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_RBP;
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
  for (const auto& operand : std::span{operands}.first(z.operand_count)) {
    const bool written = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (!written) continue;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) out.written |= register_set(operand.reg.value);
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
      continue;
    }
    if (!is_frame(operand.mem.base)) out.of_stores |= register_set(operand.mem.base);
    out.of_stores |= register_set(operand.mem.index);
    if ((z.attributes & kRepeats) != 0) out.of_stores |= register_set(ZYDIS_REGISTER_RCX);
  }
  return out;
}

}  // namespace backtrail::arch::x86::translate
