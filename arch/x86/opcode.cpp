// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/opcode.hpp"

namespace backtrail::arch::x86 {
namespace {

/// Takes a legacy prefix into `opcode`. Returns false if the byte is none.
bool take_legacy_prefix(std::uint8_t byte, Opcode& opcode) {
  switch (byte) {
    case 0x66:
      opcode.operand_size = true;
      return true;
    case 0x67:
      opcode.address_size = true;
      return true;
    case 0xf0:
      opcode.lock = true;
      return true;
    case 0xf2:
      opcode.repeat_not_equal = true;
      opcode.repeat = false;  // The last of F2 and F3 is in effect.
      return true;
    case 0xf3:
      opcode.repeat = true;
      opcode.repeat_not_equal = false;
      return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
      return true;
    default:
      return false;
  }
}

/// VEX, EVEX and XOP share their first byte with older instructions. Outside 64-bit mode the next
/// byte decides: the older instructions need a memory operand. XOP maps begin at 8, while POP has 0
/// in these bits.
bool begins_vector_encoding(Isa isa, std::uint8_t byte, std::uint8_t next) {
  switch (byte) {
    case 0x62:
    case 0xc4:
    case 0xc5:
      return isa == Isa::kAmd64 || next >= 0xc0;
    case 0x8f:
      return (next & 0x1fU) >= 8;
    default:
      return false;
  }
}

void set_end(Opcode& opcode, std::size_t end, std::span<const std::uint8_t> bytes) {
  opcode.end = static_cast<std::uint8_t>(end);
  if (end < bytes.size()) opcode.modrm = bytes[end];
}

bool is_string_operation(std::uint8_t byte) {
  return (byte >= 0x6c && byte <= 0x6f) || (byte >= 0xa4 && byte <= 0xa7) ||
         (byte >= 0xaa && byte <= 0xaf);
}

InsnKind kind_of_group5(unsigned modrm_reg) {
  switch (modrm_reg) {
    case 2:
      return InsnKind::kIndirectCall;
    case 3:
    case 5:
      return InsnKind::kFarTransfer;
    case 4:
      return InsnKind::kIndirectJump;
    default:
      return InsnKind::kOther;
  }
}

InsnKind primary_kind(const Opcode& opcode, std::optional<std::uint8_t> immediate) {
  switch (opcode.byte) {
    case 0xe0:  // LOOPNE
    case 0xe1:  // LOOPE
    case 0xe2:  // LOOP
    case 0xe3:  // JCXZ, JECXZ, JRCXZ
      return InsnKind::kConditionalJump;
    case 0xe8:
      return InsnKind::kCall;
    case 0xe9:
    case 0xeb:
      return InsnKind::kJump;
    case 0xc2:
    case 0xc3:
      return InsnKind::kReturn;
    case 0xff:
      return kind_of_group5(opcode.modrm_reg());
    case 0xcd:
      return immediate == 0x80 ? InsnKind::kSystemCall : InsnKind::kFarTransfer;
    case 0x9a:  // CALL ptr16:16/32
    case 0xca:  // RET far
    case 0xcb:
    case 0xcc:  // INT3
    case 0xce:  // INTO
    case 0xcf:  // IRET
    case 0xea:  // JMP ptr16:16/32
    case 0xf1:  // INT1
      return InsnKind::kFarTransfer;
    default:
      // XBEGIN (C7 F8) is no branch: it continues at the next instruction. An abort enters its
      // fallback, which a trace shows as an asynchronous event.
      return (opcode.byte & 0xf0U) == 0x70 ? InsnKind::kConditionalJump : InsnKind::kOther;
  }
}

InsnKind secondary_kind(const Opcode& opcode) {
  switch (opcode.byte) {
    case 0x05:  // SYSCALL
    case 0x34:  // SYSENTER
      return InsnKind::kSystemCall;
    case 0x07:  // SYSRET
    case 0x35:  // SYSEXIT
      return InsnKind::kFarTransfer;
    case 0x01: {
      const std::uint8_t modrm = opcode.modrm.value_or(0);
      const bool vm_transfer = modrm >= 0xc1 && modrm <= 0xc3;  // VMCALL VMLAUNCH VMRESUME
      const bool uiret = modrm == 0xec && opcode.repeat;
      return vm_transfer || uiret ? InsnKind::kFarTransfer : InsnKind::kOther;
    }
    default:
      return (opcode.byte & 0xf0U) == 0x80 ? InsnKind::kConditionalJump : InsnKind::kOther;
  }
}

}  // namespace

std::optional<Opcode> scan_opcode(Isa isa, std::span<const std::uint8_t> bytes) {
  if (bytes.size() > kMaxInsnBytes) bytes = bytes.first(kMaxInsnBytes);
  Opcode opcode;
  std::size_t at = 0;
  for (; at < bytes.size(); ++at) {
    if (take_legacy_prefix(bytes[at], opcode)) {
      opcode.rex_w = false;  // REX counts only directly before the opcode.
    } else if (isa == Isa::kAmd64 && (bytes[at] & 0xf0U) == 0x40) {
      opcode.rex_w = (bytes[at] & 8U) != 0;
    } else {
      break;
    }
  }
  if (at == bytes.size()) return std::nullopt;
  opcode.byte = bytes[at];
  if (opcode.byte == 0x0f) {
    if (at + 1 == bytes.size()) return std::nullopt;
    opcode.byte = bytes[++at];
    opcode.map =
        opcode.byte == 0x38 || opcode.byte == 0x3a ? OpcodeMap::kTertiary : OpcodeMap::kSecondary;
  } else if (at + 1 < bytes.size() && begins_vector_encoding(isa, opcode.byte, bytes[at + 1])) {
    opcode.map = OpcodeMap::kVector;
  }
  set_end(opcode, at + 1, bytes);
  return opcode;
}

InsnFacts classify(const Opcode& opcode, std::optional<std::uint8_t> immediate) {
  InsnFacts facts;
  if (opcode.map == OpcodeMap::kPrimary) {
    facts.kind = primary_kind(opcode, immediate);
    facts.repeats = (opcode.repeat || opcode.repeat_not_equal) && is_string_operation(opcode.byte);
  } else if (opcode.map == OpcodeMap::kSecondary) {
    facts.kind = secondary_kind(opcode);
  }
  return facts;
}

std::optional<DirectBranch> direct_branch(Isa isa, NearBranchRule rule, const Opcode& opcode) {
  const bool primary = opcode.map == OpcodeMap::kPrimary;
  const bool short_form = primary && ((opcode.byte & 0xf0U) == 0x70 ||
                                      (opcode.byte & 0xfcU) == 0xe0 || opcode.byte == 0xeb);
  const bool near_form = (primary && (opcode.byte == 0xe8 || opcode.byte == 0xe9)) ||
                         (opcode.map == OpcodeMap::kSecondary && (opcode.byte & 0xf0U) == 0x80);
  if (!short_form && !near_form) return std::nullopt;

  DirectBranch branch;
  branch.wraps_at_16_bits =
      opcode.operand_size && (isa == Isa::kI386 || (rule == NearBranchRule::kAmd && !opcode.rex_w));
  const unsigned near_bytes = branch.wraps_at_16_bits ? 2 : 4;
  branch.displacement_bytes = static_cast<std::uint8_t>(short_form ? 1 : near_bytes);
  branch.length = static_cast<std::uint8_t>(opcode.end + branch.displacement_bytes);
  return branch;
}

}  // namespace backtrail::arch::x86
