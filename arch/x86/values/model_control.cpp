// SPDX-License-Identifier: Apache-2.0
// Branches, the stack, and instructions with effects that their operands do not show.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

TraceeAddr relative_target(const Decoded& decoded, const Operand& operand) {
  return decoded.pc + decoded.insn.length + static_cast<std::uint64_t>(operand.imm.value.s);
}

bool is_relative(const Operand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative;
}

void branch(ModelBuilder& b, Ref condition) {
  InsnModel& model = b.model();
  model.special = Special::kBranch;
  model.condition = condition;
  model.target = relative_target(b.decoded(), b.decoded().operands[0]);
}

/// The target of an indirect jump or call equals its operand.
bool indirect_target(ModelBuilder& b, const Operand& operand) {
  if (operand.size != 64) return false;
  if (b.is_memory(operand)) {
    b.load(b.address(operand), b.next_pc(), 8);
    return true;
  }
  if (!b.is_general(operand)) return false;
  b.equal(b.read(operand), b.next_pc(), 64);
  return true;
}

Ref moved_stack(ModelBuilder& b, std::int64_t amount) {
  const Ref rsp = b.plus(b.slot(kRsp), amount);
  b.define(kRsp, rsp);
  return rsp;
}

bool call(ModelBuilder& b, const Operand& operand) {
  if (!is_relative(operand) && !indirect_target(b, operand)) return false;
  const Ref back = b.constant(b.decoded().pc.value() + b.decoded().insn.length);
  b.store({b.slot(kRsp), -8}, back, 8);
  moved_stack(b, -8);
  return true;
}

bool ret(ModelBuilder& b) {
  const auto operands = b.decoded().visible();
  if (b.decoded().insn.operand_width != 64) return false;
  b.load({b.slot(kRsp), 0}, b.next_pc(), 8);
  moved_stack(b, 8 + (operands.empty() ? 0 : static_cast<std::int64_t>(operands[0].imm.value.u)));
  return true;
}

bool jump_if_rcx_is_zero(ModelBuilder& b) {
  const unsigned width = b.decoded().insn.address_width;
  const Ref zero = b.temp();
  b.op(Op::kIsZero, width, {zero, b.slot(kRcx)});
  branch(b, zero);
  return true;
}

bool loop(ModelBuilder& b) {
  const unsigned width = b.decoded().insn.address_width;
  if (width != 64) return false;
  const Ref left = b.temp();
  b.op(Op::kAdd, 64, {b.slot(kRcx), left, b.constant(1)});
  b.define(kRcx, left);
  if (b.decoded().insn.mnemonic != ZYDIS_MNEMONIC_LOOP) return true;
  const Ref zero = b.temp();
  const Ref taken = b.temp();
  b.op(Op::kIsZero, 64, {zero, left});
  b.op(Op::kNot, 1, {taken, zero});
  branch(b, taken);
  return true;
}

bool is_conditional_jump(const Decoded& decoded) {
  return decoded.insn.meta.category == ZYDIS_CATEGORY_COND_BR &&
         ((decoded.insn.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           (decoded.insn.opcode & 0xf0U) == 0x70) ||
          (decoded.insn.opcode_map == ZYDIS_OPCODE_MAP_0F &&
           (decoded.insn.opcode & 0xf0U) == 0x80));
}

bool push(ModelBuilder& b, const Operand& operand) {
  if (b.decoded().insn.operand_width != 64) return false;
  Ref value;
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    value = b.constant(static_cast<std::uint64_t>(operand.imm.value.s));
  } else if (b.is_general(operand) || b.is_memory(operand)) {
    value = b.read(operand);
  } else {
    value = b.temp();
  }
  b.store({b.slot(kRsp), -8}, value, 8);
  moved_stack(b, -8);
  return true;
}

bool pop(ModelBuilder& b, const Operand& operand) {
  if (b.decoded().insn.operand_width != 64) return false;
  const Ref value = b.temp();
  b.load({b.slot(kRsp), 0}, value, 8);
  const Ref above = b.plus(b.slot(kRsp), 8);
  if (b.is_memory(operand)) {
    ModelBuilder::Address at = b.address(operand);
    if (operand.mem.base == ZYDIS_REGISTER_RSP) at.offset += 8;
    if (operand.mem.base == ZYDIS_REGISTER_ESP) return false;
    b.store(at, value, 8);
    b.define(kRsp, above);
    return true;
  }
  if (!b.is_general(operand)) return false;
  b.define(kRsp, above);
  b.write(operand, value);
  return true;
}

bool leave(ModelBuilder& b) {
  if (b.decoded().insn.operand_width != 64) return false;
  const Ref value = b.temp();
  b.load({b.slot(kRbp), 0}, value, 8);
  b.define(kRsp, b.plus(b.slot(kRbp), 8));
  b.define(kRbp, value);
  return true;
}

/// The kernel and single-stepping affect some of the flags that PUSHF shows; only the others are
/// related to the pushed value.
bool push_flags(ModelBuilder& b) {
  const Ref value = b.temp();
  b.op(Op::kEqualMask, 64, {value, b.slot(kFlagsSlot), b.constant(kTrackedFlags)});
  b.store({b.slot(kRsp), -8}, value, 8);
  moved_stack(b, -8);
  return true;
}

bool pop_flags(ModelBuilder& b) {
  const Ref value = b.temp();
  b.load({b.slot(kRsp), 0}, value, 8);
  const Ref flags = b.temp();
  b.op(Op::kEqualMask, 64, {flags, value, b.constant(kTrackedFlags)});
  b.define(kFlagsSlot, flags);
  moved_stack(b, 8);
  return true;
}

void set_flag(ModelBuilder& b, unsigned bit, bool value) {
  const Ref flags = b.new_flags(std::uint64_t{1} << bit);
  b.initially(flags, std::uint64_t{value} << bit, std::uint64_t{1} << bit);
}

}  // namespace

bool model_control(ModelBuilder& b) {
  const Decoded& decoded = b.decoded();
  const Operand& first = decoded.operands[0];
  if (is_conditional_jump(decoded)) {
    const Ref taken = b.temp();
    b.op(Op::kCondition, 64, {taken, b.slot(kFlagsSlot)}, decoded.insn.opcode & 0xfU);
    branch(b, taken);
    return true;
  }
  const bool far = decoded.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  switch (decoded.insn.mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
      return !far && (is_relative(first) || indirect_target(b, first));
    case ZYDIS_MNEMONIC_CALL:
      return !far && call(b, first);
    case ZYDIS_MNEMONIC_RET:
      return !far && ret(b);
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
      return jump_if_rcx_is_zero(b);
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
      return loop(b);
    default:
      return false;
  }
}

bool model_stack(ModelBuilder& b) {
  const Operand& first = b.decoded().operands[0];
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
      return push(b, first);
    case ZYDIS_MNEMONIC_POP:
      return pop(b, first);
    case ZYDIS_MNEMONIC_LEAVE:
      return leave(b);
    case ZYDIS_MNEMONIC_PUSHFQ:
      return push_flags(b);
    case ZYDIS_MNEMONIC_POPFQ:
      return pop_flags(b);
    default:
      return false;
  }
}

namespace {

/// Returns true if the instruction writes a segment register whose base the program can see.
bool changes_segment_base(const Decoded& decoded) {
  for (const Operand& operand : decoded.all()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
        (operand.reg.value == ZYDIS_REGISTER_FS || operand.reg.value == ZYDIS_REGISTER_GS)) {
      return true;
    }
  }
  return false;
}

/// Returns true for POP to memory, which the push model does not cover, and for other instructions
/// that access another address than their operand shows.
bool address_differs(const Decoded& decoded) {
  const Operand& first = decoded.operands[0];
  switch (decoded.insn.mnemonic) {
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
      return ModelBuilder::is_memory(first);
    default:
      return false;
  }
}

bool is_opaque(const Decoded& decoded) {
  switch (decoded.insn.mnemonic) {
    // These affect only the shadow stack pointer and the register that shows it.
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
    case ZYDIS_MNEMONIC_INCSSPD:
    case ZYDIS_MNEMONIC_INCSSPQ:
      return false;
    default:
      break;
  }
  switch (decoded.insn.meta.category) {
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_AMX_TILE:
    case ZYDIS_CATEGORY_KEYLOCKER:
    case ZYDIS_CATEGORY_KEYLOCKER_WIDE:
    case ZYDIS_CATEGORY_ENQCMD:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_CET:
      return true;
    default:
      break;
  }
  switch (decoded.insn.mnemonic) {
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_SWAPGS:
      return true;
    default:
      return false;
  }
}

void forget_all_vectors(ModelBuilder& b) {
  for (Slot slot = kFirstVectorSlot; slot < kSlotCount; ++slot) b.define_unknown(slot);
}

bool restores_state(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_XRSTORS:
    case ZYDIS_MNEMONIC_XRSTORS64:
      return true;
    default:
      return false;
  }
}

bool saves_state(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
      return true;
    default:
      return false;
  }
}

/// The components are those of edx:eax that the CPU has.
void save_state(ModelBuilder& b) {
  const ModelBuilder::Address at = b.address(b.decoded().operands[0]);
  const ZydisMnemonic mnemonic = b.decoded().insn.mnemonic;
  if (mnemonic == ZYDIS_MNEMONIC_FXSAVE || mnemonic == ZYDIS_MNEMONIC_FXSAVE64) {
    b.store_range(at, b.constant(kFxsaveBytes));
    return;
  }
  const bool compacts = mnemonic == ZYDIS_MNEMONIC_XSAVEC || mnemonic == ZYDIS_MNEMONIC_XSAVEC64;
  b.store_range(at, b.evaluated(compacts ? Function::kCompactedXsaveBytes : Function::kXsaveBytes,
                                32, 32, {b.slot(kRax), b.slot(kRdx), b.constant(b.components())}));
}

bool writes_segment_base(ModelBuilder& b) {
  const bool fs = b.decoded().insn.mnemonic == ZYDIS_MNEMONIC_WRFSBASE;
  const Operand& from = b.decoded().operands[0];
  if (from.size != 64) {
    b.define_unknown(fs ? kFsBaseSlot : kGsBaseSlot);
    return true;
  }
  b.define(fs ? kFsBaseSlot : kGsBaseSlot, b.read(from));
  return true;
}

}  // namespace

bool model_system(ModelBuilder& b) {
  const Decoded& decoded = b.decoded();
  const ZydisMnemonic mnemonic = decoded.insn.mnemonic;
  const bool far = decoded.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
      b.model().special = Special::kSystemCall;
      return true;
    case ZYDIS_MNEMONIC_CLD:
      set_flag(b, kDf, false);
      return true;
    case ZYDIS_MNEMONIC_STD:
      set_flag(b, kDf, true);
      return true;
    case ZYDIS_MNEMONIC_CLC:
      set_flag(b, kCf, false);
      return true;
    case ZYDIS_MNEMONIC_STC:
      set_flag(b, kCf, true);
      return true;
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
      return writes_segment_base(b);
    default:
      break;
  }
  const bool branches = decoded.insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;
  if (far || branches || is_opaque(decoded) || changes_segment_base(decoded)) {
    b.model_opaque();
    return true;
  }
  if (address_differs(decoded)) {
    b.model_unknown();
    b.store_anywhere();
    return true;
  }
  if (restores_state(mnemonic)) {
    forget_all_vectors(b);
    return true;
  }
  if (saves_state(mnemonic)) {
    save_state(b);
    return true;
  }
  return false;
}

}  // namespace backtrail::arch::x86::values
