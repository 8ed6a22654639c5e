// SPDX-License-Identifier: Apache-2.0
// Moves, extensions, exchanges and addresses.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

bool plain(const Operand& operand) {
  return ModelBuilder::is_general(operand) ||
         (ModelBuilder::is_memory(operand) && operand.size <= 64) ||
         operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/// Returns the operand's value, extended to all 64 bits of a new temporary or unchanged.
Ref extended(ModelBuilder& b, const Operand& to, const Operand& from, bool with_sign) {
  const Ref value = b.read(from);
  const Ref result = b.result_for(to);
  b.equal(result, value, std::min(from.size, to.size));
  if (from.size >= to.size) return result;
  if (with_sign) {
    b.op(Op::kFill, to.size, {result, value}, from.size, from.size - 1U);
  } else {
    b.initially(result, 0, low_bits(to.size) & ~low_bits(from.size));
  }
  return result;
}

void move(ModelBuilder& b, const Operand& to, const Operand& from) {
  if (b.is_memory(to)) {
    b.write(to, b.read(from));
  } else if (to.size == 64 || (to.size == 32 && b.is_memory(from))) {
    b.write(to, from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE
                    ? b.constant(static_cast<std::uint64_t>(from.imm.value.s))
                    : b.read(from));
  } else {
    b.write(to, extended(b, to, from, false));
  }
}

/// Sets rax or rdx:rax from a part of rax.
void widen_accumulator(ModelBuilder& b, unsigned from, unsigned to) {
  const Ref rax = b.slot(kRax);
  const Ref result = to == 32 ? b.temp_zero_above(32) : b.temp();
  b.equal(result, rax, from);
  b.op(Op::kFill, to, {result, rax}, from, from - 1);
  if (to == 16) b.equal(result, rax, 48, 16, 16);
  b.define(kRax, result);
}

void sign_to_rdx(ModelBuilder& b, unsigned width) {
  const Ref result = width == 32 ? b.temp_zero_above(32) : b.temp();
  b.op(Op::kFill, width, {result, b.slot(kRax)}, 0, width - 1);
  if (width == 16) b.equal(result, b.slot(kRdx), 48, 16, 16);
  b.define(kRdx, result);
}

void load_effective_address(ModelBuilder& b, const Operand& to, const Operand& from) {
  const ModelBuilder::Address at = b.address(from);
  const Ref value = b.plus(at.base, at.offset);
  if (to.size == 64) {
    b.write(to, value);
    return;
  }
  const Ref result = b.result_for(to);
  b.equal(result, value, to.size);
  b.write(to, result);
}

bool exchange(ModelBuilder& b, const Operand& x, const Operand& y) {
  if (!b.is_general(y) || (!b.is_general(x) && !b.is_memory(x))) return false;
  if (b.is_general(x) && (x.size < 32 || x.reg.value == y.reg.value)) return false;
  const Ref old_x = b.read(x);
  const Ref old_y = b.read(y);
  const auto as_value = [&](const Operand& to, Ref value) {
    if (to.size == 64 || b.is_memory(to)) return value;
    const Ref result = b.result_for(to);
    b.equal(result, value, to.size);
    return result;
  };
  b.write(x, as_value(x, old_y));
  b.write(y, as_value(y, old_x));
  return true;
}

void conditional_move(ModelBuilder& b, const Operand& to, const Operand& from) {
  const Ref chosen = b.temp();
  b.op(Op::kCondition, 64, {chosen, b.slot(kFlagsSlot)}, b.decoded().insn.opcode & 0xfU);
  const Ref moved = b.read(from);
  const Ref kept = b.read(to);
  const Ref result = b.result_for(to);
  b.op(Op::kSelect, to.size, {result, moved, chosen, kept});
  b.write(to, result);
}

void set_by_condition(ModelBuilder& b, const Operand& to) {
  const Ref result = b.temp_zero_above(1);
  b.op(Op::kCondition, 64, {result, b.slot(kFlagsSlot)}, b.decoded().insn.opcode & 0xfU);
  b.write(to, result);
}

bool swap_bytes(ModelBuilder& b, const Operand& to, const Operand& from) {
  if (to.size < 32 && !b.is_memory(to)) return false;
  const Ref value = b.read(from);
  const Ref result = b.result_for(to);
  b.op(Op::kByteSwap, to.size, {result, value});
  b.write(to, result);
  return true;
}

bool is_set(ZydisMnemonic m) {
  switch (m) {
    case ZYDIS_MNEMONIC_SETB:
    case ZYDIS_MNEMONIC_SETBE:
    case ZYDIS_MNEMONIC_SETL:
    case ZYDIS_MNEMONIC_SETLE:
    case ZYDIS_MNEMONIC_SETNB:
    case ZYDIS_MNEMONIC_SETNBE:
    case ZYDIS_MNEMONIC_SETNL:
    case ZYDIS_MNEMONIC_SETNLE:
    case ZYDIS_MNEMONIC_SETNO:
    case ZYDIS_MNEMONIC_SETNP:
    case ZYDIS_MNEMONIC_SETNS:
    case ZYDIS_MNEMONIC_SETNZ:
    case ZYDIS_MNEMONIC_SETO:
    case ZYDIS_MNEMONIC_SETP:
    case ZYDIS_MNEMONIC_SETS:
    case ZYDIS_MNEMONIC_SETZ:
      return true;
    default:
      return false;
  }
}

bool is_conditional_move(ZydisMnemonic m) {
  switch (m) {
    case ZYDIS_MNEMONIC_CMOVB:
    case ZYDIS_MNEMONIC_CMOVBE:
    case ZYDIS_MNEMONIC_CMOVL:
    case ZYDIS_MNEMONIC_CMOVLE:
    case ZYDIS_MNEMONIC_CMOVNB:
    case ZYDIS_MNEMONIC_CMOVNBE:
    case ZYDIS_MNEMONIC_CMOVNL:
    case ZYDIS_MNEMONIC_CMOVNLE:
    case ZYDIS_MNEMONIC_CMOVNO:
    case ZYDIS_MNEMONIC_CMOVNP:
    case ZYDIS_MNEMONIC_CMOVNS:
    case ZYDIS_MNEMONIC_CMOVNZ:
    case ZYDIS_MNEMONIC_CMOVO:
    case ZYDIS_MNEMONIC_CMOVP:
    case ZYDIS_MNEMONIC_CMOVS:
    case ZYDIS_MNEMONIC_CMOVZ:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool model_move(ModelBuilder& b) {
  const ZydisMnemonic mnemonic = b.decoded().insn.mnemonic;
  const auto operands = b.decoded().visible();
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PAUSE:
      return true;
    case ZYDIS_MNEMONIC_CBW:
      widen_accumulator(b, 8, 16);
      return true;
    case ZYDIS_MNEMONIC_CWDE:
      widen_accumulator(b, 16, 32);
      return true;
    case ZYDIS_MNEMONIC_CDQE:
      widen_accumulator(b, 32, 64);
      return true;
    case ZYDIS_MNEMONIC_CWD:
      sign_to_rdx(b, 16);
      return true;
    case ZYDIS_MNEMONIC_CDQ:
      sign_to_rdx(b, 32);
      return true;
    case ZYDIS_MNEMONIC_CQO:
      sign_to_rdx(b, 64);
      return true;
    default:
      break;
  }
  if (operands.empty() || !(b.is_general(operands[0]) || b.is_memory(operands[0]))) return false;
  if (is_set(mnemonic)) {
    set_by_condition(b, operands[0]);
    return true;
  }
  if (mnemonic == ZYDIS_MNEMONIC_BSWAP) return swap_bytes(b, operands[0], operands[0]);
  if (operands.size() != 2) return false;
  if (mnemonic == ZYDIS_MNEMONIC_LEA) {
    load_effective_address(b, operands[0], operands[1]);
    return true;
  }
  if (!plain(operands[0]) || !plain(operands[1])) return false;
  if (is_conditional_move(mnemonic)) {
    conditional_move(b, operands[0], operands[1]);
    return true;
  }
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVNTI:
      move(b, operands[0], operands[1]);
      return true;
    case ZYDIS_MNEMONIC_MOVZX:
      b.write(operands[0], extended(b, operands[0], operands[1], false));
      return true;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      b.write(operands[0], extended(b, operands[0], operands[1], true));
      return true;
    case ZYDIS_MNEMONIC_XCHG:
      return exchange(b, operands[0], operands[1]);
    case ZYDIS_MNEMONIC_MOVBE:
      return swap_bytes(b, operands[0], operands[1]);
    default:
      return false;
  }
}

}  // namespace backtrail::arch::x86::values
