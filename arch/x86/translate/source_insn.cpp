// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/source_insn.hpp"

#include <algorithm>

#include "arch/x86/translate/zydis_decoder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

using Operands = std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT>;

constexpr std::uint8_t kOperandSizePrefix = 0x66;
constexpr std::uint8_t kAddressSizePrefix = 0x67;
constexpr std::uint8_t kFsPrefix = 0x64;
constexpr std::uint8_t kRexWide = 8;

bool is_legacy_prefix(std::uint8_t byte) {
  constexpr std::array<std::uint8_t, 11> kPrefixes{0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36,
                                                   0x3e, 0x26, 0x64, 0x65, 0xf0};
  return std::find(kPrefixes.begin(), kPrefixes.end(), byte) != kPrefixes.end();
}

ZydisRegister whole(ZydisRegister reg) {
  return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

bool is_high_byte(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_AH || reg == ZYDIS_REGISTER_BH || reg == ZYDIS_REGISTER_CH ||
         reg == ZYDIS_REGISTER_DH;
}

bool is_segment(ZydisRegister reg) {
  return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_SEGMENT;
}

void note_register(SourceInsn& insn, ZydisRegister reg, bool written) {
  if (is_high_byte(reg)) insn.names_high_byte = true;
  switch (whole(reg)) {
    case ZYDIS_REGISTER_R10:
      insn.uses_r10 = true;
      insn.writes_r10 |= written;
      break;
    case ZYDIS_REGISTER_R11:
      insn.uses_r11 = true;
      insn.writes_r11 |= written;
      break;
    case ZYDIS_REGISTER_RAX:
      insn.writes_rax |= written;
      break;
    case ZYDIS_REGISTER_RCX:
      insn.uses_rcx = true;
      break;
    default:
      break;
  }
}

void give_to_cpu(SourceInsn& insn, UntranslatableReason why) {
  insn.kind = InsnClass::kUntranslatable;
  insn.reason = why;
}

/// Notes registers and memory operands. Returns why the instruction cannot be copied, if so.
UntranslatableReason note_operands(SourceInsn& insn, const ZydisDecodedInstruction& z,
                                   const Operands& operands) {
  UntranslatableReason verdict = UntranslatableReason::kNone;
  for (const auto& operand : std::span{operands}.first(z.operand_count)) {
    const bool written = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      note_register(insn, operand.reg.value, written);
      if (written && is_segment(operand.reg.value)) verdict = UntranslatableReason::kSegment;
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    note_register(insn, operand.mem.base, false);
    note_register(insn, operand.mem.index, false);
    const bool accesses = operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN;
    if (accesses && operand.mem.segment == ZYDIS_REGISTER_GS)
      verdict = UntranslatableReason::kSegment;
    if (accesses && operand.mem.segment == ZYDIS_REGISTER_FS) insn.reads_fs = true;
    const bool own = operand.mem.base == ZYDIS_REGISTER_RSP ||
                     operand.mem.base == ZYDIS_REGISTER_RBP ||
                     operand.mem.segment == ZYDIS_REGISTER_FS;
    if (accesses && written && !own) insn.stores = true;
    if (operand.mem.base == ZYDIS_REGISTER_EIP) verdict = UntranslatableReason::kAddressSize;
    if (operand.mem.base == ZYDIS_REGISTER_RIP && z.raw.disp.size == 32) {
      insn.relative = true;
      insn.target = insn.next() + static_cast<std::uint64_t>(z.raw.disp.value);
    }
  }
  return verdict;
}

bool raises_at_its_address(const ZydisDecodedInstruction& z) {
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
      return true;
    default:
      return z.meta.category == ZYDIS_CATEGORY_INTERRUPT || z.meta.category == ZYDIS_CATEGORY_IO ||
             z.meta.category == ZYDIS_CATEGORY_IOSTRINGOP ||
             z.meta.category == ZYDIS_CATEGORY_UINTR || z.meta.category == ZYDIS_CATEGORY_SGX;
  }
}

UntranslatableReason reason_for(const ZydisDecodedInstruction& z) {
  if (z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return UntranslatableReason::kFarTransfer;
  if (raises_at_its_address(z)) return UntranslatableReason::kInterrupt;
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
      return UntranslatableReason::kFarTransfer;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
      return UntranslatableReason::kFlags;
    case ZYDIS_MNEMONIC_XBEGIN:
      return UntranslatableReason::kTransaction;
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_SWAPGS:
      return UntranslatableReason::kSegment;
    default:
      return UntranslatableReason::kNone;
  }
}

/// Notes a MOV of a constant that may be an address.
void note_constant(SourceInsn& insn, const ZydisDecodedInstruction& z, const Operands& operands) {
  if (z.mnemonic != ZYDIS_MNEMONIC_MOV || z.operand_width < 32) return;
  if (operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return;
  insn.names = TraceeAddr{operands[1].imm.value.u};
}

void note_eax(SourceInsn& insn, const ZydisDecodedInstruction& z, const Operands& operands) {
  if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || z.operand_count < 2) return;
  const ZydisRegister reg = operands[0].reg.value;
  if (reg != ZYDIS_REGISTER_EAX && reg != ZYDIS_REGISTER_RAX) return;
  if (z.mnemonic == ZYDIS_MNEMONIC_MOV && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    insn.sets_eax_to = static_cast<std::uint32_t>(operands[1].imm.value.u);
  }
  if (z.mnemonic == ZYDIS_MNEMONIC_XOR && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
      operands[1].reg.value == reg) {
    insn.sets_eax_to = 0;
  }
}

/// Notes the few instructions by which most code loads rcx; all others are assumed to need its
/// value.
void note_rcx(SourceInsn& insn, const ZydisDecodedInstruction& z, const Operands& operands) {
  const auto& to = operands[0];
  if (to.type != ZYDIS_OPERAND_TYPE_REGISTER || to.size < 32 ||
      whole(to.reg.value) != ZYDIS_REGISTER_RCX) {
    return;
  }
  const auto& from = operands[1];
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_LEA:
      insn.sets_rcx =
          from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
          (from.type == ZYDIS_OPERAND_TYPE_REGISTER &&
           whole(from.reg.value) != ZYDIS_REGISTER_RCX) ||
          (from.type == ZYDIS_OPERAND_TYPE_MEMORY && whole(from.mem.base) != ZYDIS_REGISTER_RCX &&
           whole(from.mem.index) != ZYDIS_REGISTER_RCX);
      break;
    case ZYDIS_MNEMONIC_XOR:
      insn.sets_rcx = from.type == ZYDIS_OPERAND_TYPE_REGISTER && from.reg.value == to.reg.value;
      break;
    case ZYDIS_MNEMONIC_POP:
      insn.sets_rcx = true;
      break;
    default:
      break;
  }
  if (insn.sets_rcx) insn.uses_rcx = false;
}

void classify_branch(SourceInsn& insn, const ZydisDecodedInstruction& z, const Operands& operands) {
  const bool narrow = std::find(insn.bytes.begin(), insn.bytes.begin() + insn.prefix_bytes,
                                kOperandSizePrefix) != insn.bytes.begin() + insn.prefix_bytes;
  if (narrow && (insn.rex & kRexWide) == 0) {
    give_to_cpu(insn, UntranslatableReason::kAddressSize);
    return;
  }
  const bool direct = operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  if (direct) insn.target = insn.next() + static_cast<std::uint64_t>(z.raw.imm[0].value.s);
  switch (z.meta.category) {
    case ZYDIS_CATEGORY_RET:
      insn.kind = InsnClass::kReturn;
      if (direct) insn.stack_bytes = static_cast<std::uint16_t>(z.raw.imm[0].value.u);
      return;
    case ZYDIS_CATEGORY_CALL:
      insn.kind = direct ? InsnClass::kCall : InsnClass::kIndirectCall;
      return;
    case ZYDIS_CATEGORY_UNCOND_BR:
      insn.kind = direct ? InsnClass::kJump : InsnClass::kIndirectJump;
      return;
    default:
      break;
  }
  insn.condition = static_cast<std::uint8_t>(z.opcode & 0xfU);
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
      insn.kind = InsnClass::kJumpIfRcxZero;
      return;
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
      insn.kind = InsnClass::kLoop;
      insn.condition = z.opcode;
      if (insn.address_size_prefix) give_to_cpu(insn, UntranslatableReason::kAddressSize);
      return;
    default:
      insn.kind = InsnClass::kConditionalJump;
  }
}

bool is_branch(const ZydisDecodedInstruction& z) {
  return z.meta.category == ZYDIS_CATEGORY_RET || z.meta.category == ZYDIS_CATEGORY_CALL ||
         z.meta.category == ZYDIS_CATEGORY_UNCOND_BR || z.meta.category == ZYDIS_CATEGORY_COND_BR;
}

void classify_load_address(SourceInsn& insn, const Operands& operands) {
  if (operands[0].size < 32) {
    give_to_cpu(insn, UntranslatableReason::kAddressSize);
    return;
  }
  insn.kind = InsnClass::kLoadAddress;
  insn.destination = static_cast<std::uint8_t>(ZydisRegisterGetId(operands[0].reg.value));
  insn.destination_bits = static_cast<std::uint8_t>(operands[0].size);
  insn.names = insn.target;
}

void note_encoding(SourceInsn& insn, const ZydisDecodedInstruction& z) {
  while (insn.prefix_bytes < insn.length && is_legacy_prefix(insn.bytes[insn.prefix_bytes])) {
    if (insn.bytes[insn.prefix_bytes] == kAddressSizePrefix) insn.address_size_prefix = true;
    ++insn.prefix_bytes;
  }
  switch (z.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
      insn.encoding = insn.bytes[insn.prefix_bytes] == 0xc5 ? Encoding::kVex2 : Encoding::kVex3;
      break;
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
      insn.encoding = Encoding::kVex3;
      break;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
      insn.encoding = Encoding::kEvex;
      break;
    default:
      if ((z.attributes & ZYDIS_ATTRIB_HAS_REX) != 0) insn.rex = insn.bytes[z.raw.rex.offset];
  }
  insn.modrm_offset = z.raw.modrm.offset;
  insn.displacement_offset = z.raw.disp.offset;
}

}  // namespace

std::string_view to_string(UntranslatableReason reason) {
  switch (reason) {
    case UntranslatableReason::kNone:
      return "none";
    case UntranslatableReason::kUnreadable:
      return "unreadable";
    case UntranslatableReason::kUndecodable:
      return "undecodable";
    case UntranslatableReason::kSystemCall:
      return "system call";
    case UntranslatableReason::kInterrupt:
      return "interrupt";
    case UntranslatableReason::kFarTransfer:
      return "far transfer";
    case UntranslatableReason::kSegment:
      return "segment";
    case UntranslatableReason::kFlags:
      return "popf";
    case UntranslatableReason::kTransaction:
      return "transaction";
    case UntranslatableReason::kAddressSize:
      return "prefix";
    case UntranslatableReason::kRegisters:
      return "registers";
    case UntranslatableReason::kBreakpoint:
      return "breakpoint";
    case UntranslatableReason::kMemory:
      return "code outside files";
    case UntranslatableReason::kSection:
      return "restartable sequence";
    case UntranslatableReason::kFailedCall:
      return "failed system call";
  }
  return "unknown";
}

SourceInsn decode_source(TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  SourceInsn insn;
  insn.pc = pc;
  insn.reason =
      bytes.empty() ? UntranslatableReason::kUnreadable : UntranslatableReason::kUndecodable;
  bytes = bytes.first(std::min(bytes.size(), kMaxInsnBytes));
  ZydisDecodedInstruction z;
  Operands operands;
  if (bytes.empty() || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis_decoder(), bytes.data(),
                                                            bytes.size(), &z, operands.data()))) {
    return insn;
  }
  std::copy_n(bytes.begin(), z.length, insn.bytes.begin());
  insn.length = z.length;
  insn.kind = InsnClass::kCopy;
  insn.reason = UntranslatableReason::kNone;
  note_encoding(insn, z);
  const UntranslatableReason operand_verdict = note_operands(insn, z, operands);
  note_eax(insn, z, operands);
  note_constant(insn, z, operands);
  note_rcx(insn, z, operands);
  if (const UntranslatableReason why = reason_for(z); why != UntranslatableReason::kNone) {
    give_to_cpu(insn, why);
  } else if (z.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
    insn.kind = InsnClass::kSystemCall;  // uses segment registers, too, in a way of its own
  } else if (operand_verdict != UntranslatableReason::kNone) {
    give_to_cpu(insn, operand_verdict);
  } else if (is_branch(z)) {
    classify_branch(insn, z, operands);
  } else if (z.mnemonic == ZYDIS_MNEMONIC_LEA && insn.relative) {
    classify_load_address(insn, operands);
  } else if (insn.relative && insn.encoding == Encoding::kLegacy && insn.rex == 0 &&
             (insn.bytes[insn.prefix_bytes] & 0xf0U) == 0x40) {
    give_to_cpu(insn,
                UntranslatableReason::kAddressSize);  // a REX prefix that a later prefix cancels
  }
  return insn;
}

std::optional<Rebased> rebase(const SourceInsn& insn, bool base_is_r11) {
  Rebased out;
  const auto put = [&](std::uint8_t byte) { out.bytes[out.length++] = byte; };
  std::size_t from = 0;
  while (from < insn.prefix_bytes) put(insn.bytes[from++]);
  switch (insn.encoding) {
    case Encoding::kLegacy:
      if (insn.names_high_byte) return std::nullopt;
      put(static_cast<std::uint8_t>(insn.rex | 0x41U));
      if (insn.rex != 0) ++from;
      break;
    case Encoding::kVex2: {
      // C5 [R vvvv L pp] becomes C4 [R X B 00001] [W vvvv L pp]; R, X, B are inverted.
      const std::uint8_t packed = insn.bytes[from + 1];
      put(0xc4);
      put(static_cast<std::uint8_t>((packed & 0x80U) | 0x41U));
      put(static_cast<std::uint8_t>(packed & 0x7fU));
      from += 2;
      break;
    }
    case Encoding::kVex3:
    case Encoding::kEvex:
      put(insn.bytes[from++]);
      put(static_cast<std::uint8_t>(insn.bytes[from++] & ~0x20U));
      break;
  }
  while (from < insn.modrm_offset) put(insn.bytes[from++]);
  const std::uint8_t low_bits = base_is_r11 ? 3 : 2;
  put(static_cast<std::uint8_t>((insn.bytes[from] & 0x38U) | low_bits));
  from += 1 + sizeof(std::uint32_t);
  while (from < insn.length) put(insn.bytes[from++]);
  return out;
}

Rebased load_operand(const SourceInsn& insn) {
  Rebased out;
  const auto put = [&](std::uint8_t byte) { out.bytes[out.length++] = byte; };
  if (insn.reads_fs) put(kFsPrefix);
  if (insn.address_size_prefix) put(kAddressSizePrefix);
  put(static_cast<std::uint8_t>(0x4cU | (insn.rex & 3U)));
  put(0x8b);
  std::size_t from = insn.modrm_offset;
  put(static_cast<std::uint8_t>((insn.bytes[from++] & 0xc7U) | 0x10U));
  while (from < insn.length) put(insn.bytes[from++]);
  return out;
}

}  // namespace backtrail::arch::x86::translate
