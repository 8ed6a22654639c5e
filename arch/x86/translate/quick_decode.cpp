// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/quick_decode.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kOperandSize = 0x66;
constexpr std::uint8_t kRepeat = 0xf3;
constexpr std::uint8_t kRepeatNot = 0xf2;
constexpr std::uint8_t kTwoBytes = 0x0f;
constexpr std::uint8_t kRexWide = 8;
constexpr unsigned kRax = 0;
constexpr unsigned kRcx = 1;
constexpr unsigned kRsp = 4;
constexpr unsigned kRbp = 5;
constexpr unsigned kR10 = 10;
constexpr unsigned kR11 = 11;
constexpr unsigned kNoRegister = 16;

/// How an opcode uses its operands: E is the register or memory operand of ModRM, G the register
/// operand.
enum Form : std::uint8_t {
  kUnknown,        ///< Left to the general decoder.
  kNone,           ///< No operands that matter.
  kReadBoth,       ///< Reads E and G.
  kToE,            ///< Reads G; reads and writes E.
  kMoveToE,        ///< Copies G to E.
  kToG,            ///< Reads E; reads and writes G.
  kMoveToG,        ///< Copies E to G, perhaps extended.
  kAddress,        ///< LEA
  kReadE,          ///< Reads E.
  kChangeE,        ///< Reads and writes E, or writes parts of it.
  kVectorRead,     ///< Reads E, which is memory or a vector register; G is a vector register.
  kVectorStore,    ///< Writes E, which is memory or a vector register; G is a vector register.
  kVectorFromE,    ///< Copies E, a general register or memory, to a vector register.
  kVectorToE,      ///< Copies a vector register to E, a general register or memory.
  kMoveImmediate,  ///< MOV of an immediate to E.
  kGroup1,         ///< ADD ... CMP of an immediate
  kGroup3,         ///< TEST, NOT, NEG, MUL, DIV
  kGroup45,        ///< INC, DEC; CALL, JMP and PUSH unless bytes
  kShift,
  kShiftByCl,
  kGroup8,  ///< BT and its kind with an immediate
  kPush,    ///< Register in the opcode.
  kPop,
  kLoadImmediate,  ///< MOV of an immediate to a register in the opcode.
  kReadRax,        ///< Reads rax, with an immediate.
  kChangeRax,
  kExtendRax,  ///< CDQE
  kSwapBytes,
  kJcc,
  kDirectJump,
  kDirectCall,
  kReturnNear,
};
enum Flag : std::uint8_t {
  kByte = 1,       ///< Operands are bytes.
  kByteE = 2,      ///< E is a byte.
  kImm8 = 4,       ///< A byte of immediate follows.
  kImmZ = 8,       ///< Two or four bytes of immediate follow.
  kPrefixed = 16,  ///< The prefix 66 is allowed and selects 16 bits, or another vector operation.
  kRepeated = 32,  ///< The prefixes F2 and F3 are allowed.
  kBare = 64,      ///< Allowed without a prefix.
};

struct OpcodeInfo {
  Form form = kUnknown;
  std::uint8_t flags = 0;
};
using OpcodeTable = std::array<OpcodeInfo, 256>;

constexpr void set(OpcodeTable& table, unsigned first, unsigned last, Form form, unsigned flags) {
  for (unsigned opcode = first; opcode <= last; ++opcode) {
    table.at(opcode) = {form, static_cast<std::uint8_t>(flags)};
  }
}

constexpr OpcodeTable one_byte_opcodes() {
  OpcodeTable table{};
  for (unsigned op = 0; op < 8; ++op) {
    const unsigned at = 8 * op;
    const bool compares = op == 7;
    set(table, at, at, compares ? kReadBoth : kToE, kByte | kBare);
    set(table, at + 1, at + 1, compares ? kReadBoth : kToE, kPrefixed | kBare);
    set(table, at + 2, at + 2, compares ? kReadBoth : kToG, kByte | kBare);
    set(table, at + 3, at + 3, compares ? kReadBoth : kToG, kPrefixed | kBare);
    set(table, at + 4, at + 4, compares ? kReadRax : kChangeRax, kByte | kImm8 | kBare);
    set(table, at + 5, at + 5, compares ? kReadRax : kChangeRax, kImmZ | kPrefixed | kBare);
  }
  set(table, 0x50, 0x57, kPush, kBare);
  set(table, 0x58, 0x5f, kPop, kBare);
  set(table, 0x63, 0x63, kMoveToG, kBare);
  set(table, 0x68, 0x68, kNone, kImmZ | kBare);
  set(table, 0x69, 0x69, kMoveToG, kImmZ | kPrefixed | kBare);
  set(table, 0x6a, 0x6a, kNone, kImm8 | kBare);
  set(table, 0x6b, 0x6b, kMoveToG, kImm8 | kPrefixed | kBare);
  set(table, 0x70, 0x7f, kJcc, kImm8 | kBare);
  set(table, 0x80, 0x80, kGroup1, kByte | kImm8 | kBare);
  set(table, 0x81, 0x81, kGroup1, kImmZ | kPrefixed | kBare);
  set(table, 0x83, 0x83, kGroup1, kImm8 | kPrefixed | kBare);
  set(table, 0x84, 0x84, kReadBoth, kByte | kBare);
  set(table, 0x85, 0x85, kReadBoth, kPrefixed | kBare);
  set(table, 0x88, 0x88, kMoveToE, kByte | kBare);
  set(table, 0x89, 0x89, kMoveToE, kPrefixed | kBare);
  set(table, 0x8a, 0x8a, kMoveToG, kByte | kBare);
  set(table, 0x8b, 0x8b, kMoveToG, kPrefixed | kBare);
  set(table, 0x8d, 0x8d, kAddress, kBare);
  set(table, 0x98, 0x98, kExtendRax, kBare);
  set(table, 0xa8, 0xa8, kReadRax, kByte | kImm8 | kBare);
  set(table, 0xa9, 0xa9, kReadRax, kImmZ | kPrefixed | kBare);
  set(table, 0xb0, 0xb7, kLoadImmediate, kByte | kImm8 | kBare);
  set(table, 0xb8, 0xbf, kLoadImmediate, kImmZ | kBare);
  set(table, 0xc0, 0xc0, kShift, kByte | kImm8 | kBare);
  set(table, 0xc1, 0xc1, kShift, kImm8 | kPrefixed | kBare);
  set(table, 0xc3, 0xc3, kReturnNear, kBare);
  set(table, 0xc6, 0xc6, kMoveImmediate, kByte | kImm8 | kBare);
  set(table, 0xc7, 0xc7, kMoveImmediate, kImmZ | kPrefixed | kBare);
  set(table, 0xd0, 0xd0, kShift, kByte | kBare);
  set(table, 0xd1, 0xd1, kShift, kPrefixed | kBare);
  set(table, 0xd2, 0xd2, kShiftByCl, kByte | kBare);
  set(table, 0xd3, 0xd3, kShiftByCl, kPrefixed | kBare);
  set(table, 0xe8, 0xe8, kDirectCall, kImmZ | kBare);
  set(table, 0xe9, 0xe9, kDirectJump, kImmZ | kBare);
  set(table, 0xeb, 0xeb, kDirectJump, kImm8 | kBare);
  set(table, 0xf6, 0xf6, kGroup3, kByte | kBare);
  set(table, 0xf7, 0xf7, kGroup3, kPrefixed | kBare);
  set(table, 0xfe, 0xfe, kGroup45, kByte | kBare);
  set(table, 0xff, 0xff, kGroup45, kPrefixed | kBare);
  return table;
}

constexpr OpcodeTable two_byte_opcodes() {
  OpcodeTable table{};
  constexpr unsigned kAnyPrefix = kBare | kPrefixed | kRepeated;
  set(table, 0x10, 0x10, kVectorRead, kAnyPrefix);
  set(table, 0x11, 0x11, kVectorStore, kAnyPrefix);
  set(table, 0x14, 0x14, kVectorRead, kBare | kPrefixed);
  set(table, 0x1f, 0x1f, kReadE, kBare | kPrefixed);
  set(table, 0x28, 0x28, kVectorRead, kBare | kPrefixed);
  set(table, 0x29, 0x29, kVectorStore, kBare | kPrefixed);
  set(table, 0x2e, 0x2f, kVectorRead, kBare | kPrefixed);
  set(table, 0x40, 0x4f, kToG, kBare | kPrefixed);
  set(table, 0x51, 0x51, kVectorRead, kAnyPrefix);
  set(table, 0x54, 0x57, kVectorRead, kBare | kPrefixed);
  set(table, 0x58, 0x5a, kVectorRead, kAnyPrefix);
  set(table, 0x5c, 0x5f, kVectorRead, kAnyPrefix);
  set(table, 0x6c, 0x6d, kVectorRead, kPrefixed);
  set(table, 0x6e, 0x6e, kVectorFromE, kPrefixed);
  set(table, 0x6f, 0x6f, kVectorRead, kPrefixed);
  set(table, 0x7e, 0x7e, kVectorToE, kPrefixed);
  set(table, 0x7f, 0x7f, kVectorStore, kPrefixed);
  set(table, 0x80, 0x8f, kJcc, kImmZ | kBare);
  set(table, 0x90, 0x9f, kChangeE, kByte | kBare);
  set(table, 0xa3, 0xa3, kReadBoth, kBare | kPrefixed);
  set(table, 0xaf, 0xaf, kToG, kBare | kPrefixed);
  set(table, 0xb6, 0xb6, kMoveToG, kByteE | kBare | kPrefixed);
  set(table, 0xb7, 0xb7, kMoveToG, kBare);
  set(table, 0xba, 0xba, kGroup8, kImm8 | kBare | kPrefixed);
  set(table, 0xbe, 0xbe, kMoveToG, kByteE | kBare | kPrefixed);
  set(table, 0xbf, 0xbf, kMoveToG, kBare);
  set(table, 0xc8, 0xcf, kSwapBytes, kBare);
  set(table, 0xd4, 0xd4, kVectorRead, kPrefixed);
  set(table, 0xd6, 0xd6, kVectorStore, kPrefixed);
  set(table, 0xef, 0xef, kVectorRead, kPrefixed);
  set(table, 0xfe, 0xfe, kVectorRead, kPrefixed);
  return table;
}

constexpr OpcodeTable kOneByte = one_byte_opcodes();
constexpr OpcodeTable kTwoByte = two_byte_opcodes();

template <typename T>
T read_at(const std::uint8_t* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Reads a signed number and extends it.
template <typename T>
std::uint64_t extended_at(const std::uint8_t* bytes) {
  return static_cast<std::uint64_t>(std::int64_t{read_at<T>(bytes)});
}

/// Decodes one instruction of which all possible bytes are there.
class QuickDecoder {
 public:
  QuickDecoder(TraceeAddr pc, const std::uint8_t* bytes, SourceInsn& insn)
      : bytes_{bytes}, insn_{insn} {
    insn_.pc = pc;
  }

  bool decode() {
    if (!take_prefixes() || !take_opcode()) return false;
    if (has_modrm() && !take_modrm()) return false;
    if (!take_operands()) return false;
    take_immediate();
    insn_.length = static_cast<std::uint8_t>(at_);
    // A copy of constant length takes two instructions.
    std::copy_n(bytes_, kMaxInsnBytes, insn_.bytes.begin());
    if (insn_.relative) insn_.target = insn_.next() + displacement_;
    return classify();
  }

 private:
  bool take_prefixes() {
    if (bytes_[at_] == kOperandSize || bytes_[at_] == kRepeat || bytes_[at_] == kRepeatNot) {
      prefix_ = bytes_[at_++];
      insn_.prefix_bytes = 1;
    }
    if ((bytes_[at_] & 0xf0U) == 0x40) {
      insn_.rex = bytes_[at_++];
      wide_ = (insn_.rex & kRexWide) != 0;
    }
    return true;
  }

  bool take_opcode() {
    two_bytes_ = bytes_[at_] == kTwoBytes;
    if (two_bytes_) ++at_;
    opcode_ = bytes_[at_++];
    info_ = (two_bytes_ ? kTwoByte : kOneByte)[opcode_];
    switch (prefix_) {
      case 0:
        return info_.form != kUnknown && has(kBare);
      case kOperandSize:
        // For general operands REX.W overrides the prefix, which compilers do not write.
        return has(kPrefixed) && !(wide_ && !is_vector());
      default:
        return two_bytes_ && has(kRepeated);
    }
  }

  [[nodiscard]] bool has(Flag flag) const { return (info_.flags & flag) != 0; }
  [[nodiscard]] bool is_vector() const {
    return info_.form >= kVectorRead && info_.form <= kVectorToE;
  }
  [[nodiscard]] bool has_modrm() const { return info_.form >= kReadBoth && info_.form <= kGroup8; }
  [[nodiscard]] bool is_memory() const { return mod_ != 3; }
  [[nodiscard]] bool is_narrow() const { return prefix_ == kOperandSize && !is_vector(); }

  bool take_modrm() {
    insn_.modrm_offset = static_cast<std::uint8_t>(at_);
    const std::uint8_t modrm = bytes_[at_++];
    mod_ = modrm >> 6U;
    reg_ = (modrm >> 3U) & 7U;
    rm_ = modrm & 7U;
    g_ = reg_ | (insn_.rex & 4U) << 1U;
    e_ = rm_ | (insn_.rex & 1U) << 3U;
    if (!is_memory()) return true;
    unsigned displacement = mod_ == 1 ? 1 : mod_ == 2 ? 4 : 0;
    base_ = e_;
    if (rm_ == kRsp) {
      const std::uint8_t sib = bytes_[at_++];
      index_ = ((sib >> 3U) & 7U) | (insn_.rex & 2U) << 2U;
      if (index_ == kRsp) index_ = kNoRegister;
      base_ = (sib & 7U) | (insn_.rex & 1U) << 3U;
      if (mod_ == 0 && (sib & 7U) == kRbp) {
        base_ = kNoRegister;
        displacement = 4;
      }
    } else if (mod_ == 0 && rm_ == kRbp) {
      base_ = kNoRegister;
      displacement = 4;
      insn_.relative = true;
    }
    if (displacement == 0) return true;
    insn_.displacement_offset = static_cast<std::uint8_t>(at_);
    displacement_ = displacement == 1 ? extended_at<std::int8_t>(bytes_ + at_)
                                      : extended_at<std::int32_t>(bytes_ + at_);
    at_ += displacement;
    return true;
  }

  void uses(unsigned reg, bool written = false) {
    switch (reg) {
      case kR10:
        insn_.uses_r10 = true;
        insn_.writes_r10 |= written;
        break;
      case kR11:
        insn_.uses_r11 = true;
        insn_.writes_r11 |= written;
        break;
      case kRax:
        insn_.writes_rax |= written;
        break;
      case kRcx:
        insn_.uses_rcx = true;
        break;
      default:
        break;
    }
  }
  /// Notes a general register that may be one of ah, ch, dh and bh.
  void uses_register(unsigned reg, bool is_byte, bool written) {
    const bool high = is_byte && insn_.rex == 0 && reg >= 4;
    if (high) insn_.names_high_byte = true;
    uses(high ? reg - 4 : reg, written);
  }
  void uses_g(bool written) { uses_register(g_, has(kByte), written); }
  void uses_memory(bool written) {
    uses(base_);
    uses(index_);
    const bool own = base_ == kRsp || base_ == kRbp;
    if (written && !own) insn_.stores = true;
  }
  void uses_e(bool written) {
    if (is_memory()) return uses_memory(written);
    uses_register(e_, has(kByte) || has(kByteE), written);
  }
  [[nodiscard]] bool memory_uses_rcx() const { return base_ == kRcx || index_ == kRcx; }
  /// Call for an instruction that overwrites `reg`, and whose source is E if `from_e`.
  void overwrites(unsigned reg, bool from_e) {
    if (reg != kRcx || is_narrow() || has(kByte)) return;
    if (from_e && (is_memory() ? memory_uses_rcx() : e_source_is_rcx())) return;
    insn_.sets_rcx = true;
    insn_.uses_rcx = false;
  }
  [[nodiscard]] bool e_source_is_rcx() const {
    const bool high = has(kByteE) && insn_.rex == 0 && e_ >= 4;
    return (high ? e_ - 4 : e_) == kRcx;
  }

  bool take_operands() {
    switch (info_.form) {
      case kReadBoth:
        uses_e(false);
        uses_g(false);
        return !(two_bytes_ && is_memory());  // BT with a bit offset in memory
      case kToE:
        uses_e(true);
        uses_g(false);
        note_zeroing();
        return true;
      case kToG:
        uses_g(true);
        uses_e(false);
        note_zeroing();
        return true;
      case kMoveToE:
        uses_e(true);
        uses_g(false);
        if (!is_memory() && g_ != kRcx) overwrites(e_, false);
        return true;
      case kMoveToG:
        uses_g(true);
        uses_e(false);
        // IMUL with three operands writes G, too, but is not among those that are known to.
        if (opcode_ != 0x69 && opcode_ != 0x6b) overwrites(g_, true);
        return true;
      case kAddress:
        uses_g(true);
        uses_memory(false);
        overwrites(g_, true);
        return is_memory();
      case kReadE:
        uses_e(false);
        return reg_ == 0 || opcode_ != 0x1f;
      case kChangeE:
        uses_e(true);
        return true;
      case kVectorRead:
        if (is_memory()) uses_memory(false);
        return true;
      case kVectorStore:
        if (is_memory()) uses_memory(true);
        return true;
      case kVectorFromE:
        uses_e(false);
        return true;
      case kVectorToE:
        uses_e(true);
        return true;
      default:
        return take_other_operands();
    }
  }

  bool take_other_operands() {
    const unsigned in_opcode = (opcode_ & 7U) | (insn_.rex & 1U) << 3U;
    switch (info_.form) {
      case kMoveImmediate:
        uses_e(true);
        if (!is_memory()) overwrites(e_, false);
        return reg_ == 0;
      case kGroup1:
        uses_e(reg_ != 7);
        return true;
      case kGroup3:
        uses_e(reg_ == 2 || reg_ == 3);
        if (reg_ >= 4) uses(kRax, true);
        return reg_ != 1;
      case kGroup45:
        uses_e(reg_ < 2);
        if (reg_ < 2) return true;
        return !has(kByte) && prefix_ == 0 && (reg_ == 2 || reg_ == 4 || reg_ == 6);
      case kShift:
        uses_e(true);
        return reg_ != 6;
      case kShiftByCl:
        uses_e(true);
        uses(kRcx);
        return reg_ != 6;
      case kGroup8:
        uses_e(reg_ != 4);
        return reg_ >= 4;
      case kPush:
        uses(in_opcode);
        return true;
      case kPop:
        uses(in_opcode, true);
        overwrites(in_opcode, false);
        return true;
      case kLoadImmediate:
        uses_register(in_opcode, has(kByte), true);
        overwrites(in_opcode, false);
        e_ = in_opcode;
        mod_ = 3;
        return true;
      case kReadRax:
        return true;
      case kChangeRax:
      case kExtendRax:
        uses(kRax, true);
        return true;
      case kSwapBytes:
        uses(in_opcode, true);
        return true;
      default:
        return true;
    }
  }

  /// Notes XOR of a register with itself.
  void note_zeroing() {
    const bool zeroes = !two_bytes_ && (opcode_ & 0xf8U) == 0x30 && !is_memory() && e_ == g_;
    if (!zeroes || has(kByte) || is_narrow()) return;
    overwrites(e_, false);
    if (e_ == kRax) insn_.sets_eax_to = 0;
  }

  [[nodiscard]] unsigned immediate_bytes() const {
    if (info_.form == kGroup3 && reg_ == 0) return has(kByte) ? 1 : is_narrow() ? 2 : 4;
    if (has(kImm8)) return 1;
    if (!has(kImmZ)) return 0;
    if (info_.form == kLoadImmediate && wide_) return 8;
    return is_narrow() ? 2 : 4;
  }

  void take_immediate() {
    const unsigned count = immediate_bytes();
    switch (count) {
      case 1:
        immediate_ = extended_at<std::int8_t>(bytes_ + at_);
        break;
      case 4:
        immediate_ = extended_at<std::int32_t>(bytes_ + at_);
        break;
      case 8:
        immediate_ = read_at<std::uint64_t>(bytes_ + at_);
        break;
      default:
        break;
    }
    at_ += count;
  }

  bool classify() {
    insn_.kind = InsnClass::kCopy;
    insn_.reason = UntranslatableReason::kNone;
    switch (info_.form) {
      case kAddress:
        if (!insn_.relative) return true;
        insn_.kind = InsnClass::kLoadAddress;
        insn_.destination = static_cast<std::uint8_t>(g_);
        insn_.destination_bits = wide_ ? 64 : 32;
        insn_.names = insn_.target;
        return true;
      case kMoveImmediate:
      case kLoadImmediate:
        note_constant();
        return true;
      case kJcc:
        insn_.kind = InsnClass::kConditionalJump;
        insn_.condition = opcode_ & 0xfU;
        break;
      case kDirectJump:
        insn_.kind = InsnClass::kJump;
        break;
      case kDirectCall:
        insn_.kind = InsnClass::kCall;
        break;
      case kReturnNear:
        insn_.kind = InsnClass::kReturn;
        return true;
      case kGroup45:
        if (reg_ == 2) insn_.kind = InsnClass::kIndirectCall;
        if (reg_ == 4) insn_.kind = InsnClass::kIndirectJump;
        return true;
      default:
        return true;
    }
    insn_.target = insn_.next() + immediate_;
    return true;
  }

  void note_constant() {
    if (has(kByte) || is_narrow()) return;
    insn_.names = TraceeAddr{immediate_};
    if (!is_memory() && e_ == kRax) insn_.sets_eax_to = static_cast<std::uint32_t>(immediate_);
  }

  const std::uint8_t* bytes_;
  SourceInsn& insn_;
  std::size_t at_ = 0;
  std::uint8_t prefix_ = 0;
  bool wide_ = false;
  bool two_bytes_ = false;
  std::uint8_t opcode_ = 0;
  OpcodeInfo info_;
  unsigned mod_ = 0;
  unsigned reg_ = 0;
  unsigned rm_ = 0;
  unsigned g_ = kNoRegister;
  unsigned e_ = kNoRegister;
  unsigned base_ = kNoRegister;
  unsigned index_ = kNoRegister;
  std::uint64_t displacement_ = 0;
  std::uint64_t immediate_ = 0;
};

}  // namespace

const SourceInsn unknown_insn;

bool quick_decode(TraceeAddr pc, std::span<const std::uint8_t> bytes, SourceInsn& insn) {
  if (bytes.size() < kMaxInsnBytes) return false;
  return QuickDecoder{pc, bytes.data(), insn}.decode();
}

}  // namespace backtrail::arch::x86::translate
