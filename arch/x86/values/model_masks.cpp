// SPDX-License-Identifier: Apache-2.0
// The mask registers of AVX-512, and the comparisons and tests that set them.
#include <algorithm>
#include <array>

#include <Zydis/Zydis.h>

#include "arch/x86/values/model_vectors.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

constexpr unsigned kLaneBits = 64;

std::optional<Slot> mask_of(const Operand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  return ModelBuilder::mask_slot(operand.reg.value);
}

bool move(ModelBuilder& b, unsigned width) {
  const auto operands = b.decoded().visible();
  const Operand& to = operands[0];
  const Operand& from = operands[1];
  const Ref value = b.temp_zero_above(width);
  if (ModelBuilder::is_memory(from)) {
    b.load(b.address(from), value, width / 8);
  } else if (const auto mask = mask_of(from)) {
    b.equal(value, ModelBuilder::slot(*mask), width);
  } else {
    b.equal(value, b.read(from), width);
  }
  if (ModelBuilder::is_memory(to)) {
    b.store(b.address(to), value, width / 8);
  } else if (const auto mask = mask_of(to)) {
    b.define(*mask, value);
  } else {
    b.write(to, value);
  }
  return true;
}

/// The mask registers that are operands, in their order.
struct Masks {
  Slot to = 0;
  Ref first;
  Ref second = {};  ///< none() where there are two operands.
  bool same = false;
};

std::optional<Masks> masks(const ModelBuilder& b) {
  const auto operands = b.decoded().visible();
  const auto to = mask_of(operands[0]);
  const auto first = mask_of(operands[1]);
  if (!to || !first) return std::nullopt;
  Masks out{.to = *to, .first = ModelBuilder::slot(*first)};
  if (operands.size() < 3) return out;
  const auto second = mask_of(operands[2]);
  if (!second) return std::nullopt;
  out.second = ModelBuilder::slot(*second);
  out.same = *first == *second;
  return out;
}

bool relate(ModelBuilder& b, Op op, unsigned width) {
  const auto from = masks(b);
  if (!from) return false;
  const Ref result = b.temp_zero_above(width);
  if (from->same && (op == Op::kXor || op == Op::kAndNot)) {
    b.initially(result, 0, low_bits(width));
  } else if (from->second.none()) {
    b.op(op, width, {result, from->first});
  } else {
    b.op(op, width, {result, from->first, from->second});
  }
  b.define(from->to, result);
  return true;
}

/// KXNOR: of a register with itself it sets every bit.
bool exclusive_nor(ModelBuilder& b, unsigned width) {
  const auto from = masks(b);
  if (!from || from->second.none()) return false;
  const Ref result = b.temp_zero_above(width);
  if (from->same) {
    b.initially(result, low_bits(width), low_bits(width));
  } else {
    const Ref differs = b.temp_zero_above(width);
    b.op(Op::kXor, width, {differs, from->first, from->second});
    b.op(Op::kNot, width, {result, differs});
  }
  b.define(from->to, result);
  return true;
}

bool shift(ModelBuilder& b, bool left, unsigned width) {
  const auto operands = b.decoded().visible();
  const auto to = mask_of(operands[0]);
  const auto from = mask_of(operands[1]);
  if (!to || !from) return false;
  const auto by = static_cast<unsigned>(std::min<std::uint64_t>(operands[2].imm.value.u, width));
  const unsigned kept = width - by;
  const Ref result = b.temp_zero_above(width);
  b.initially(result, 0, left ? low_bits(by) : low_bits(width) & ~low_bits(kept));
  if (kept != 0) {
    b.equal(result, ModelBuilder::slot(*from), kept, left ? by : 0, left ? 0 : by);
  }
  b.define(*to, result);
  return true;
}

/// KUNPCKx: the low halves of both, that of the second one below.
bool unpack(ModelBuilder& b, unsigned half) {
  const auto from = masks(b);
  if (!from || from->second.none()) return false;
  const Ref result = b.temp_zero_above(2 * half);
  b.equal(result, from->second, half);
  b.equal(result, from->first, half, half);
  b.define(from->to, result);
  return true;
}

void zero_flag(ModelBuilder& b, Ref flags, unsigned flag, Ref value, unsigned width) {
  const Ref is_zero = b.temp();
  b.op(Op::kIsZero, width, {is_zero, value});
  b.equal(flags, is_zero, 1, flag, 0);
}

Ref flags_of_masks(ModelBuilder& b) {
  const Ref flags = b.new_flags();
  constexpr std::uint64_t kCleared = kArithmeticFlags & ~(1ULL << kZf) & ~(1ULL << kCf);
  b.initially(flags, 0, kCleared);
  return flags;
}

/// KORTEST: ZF tells that no bit is set, CF that all are.
bool or_test(ModelBuilder& b, unsigned width) {
  const auto operands = masks(b);
  if (!operands) return false;
  const Slot first = operands->to;
  const Ref either = b.temp_zero_above(width);
  b.op(Op::kOr, width, {either, ModelBuilder::slot(first), operands->first});
  const Ref neither = b.temp_zero_above(width);
  b.op(Op::kNot, width, {neither, either});
  const Ref flags = flags_of_masks(b);
  zero_flag(b, flags, kZf, either, width);
  zero_flag(b, flags, kCf, neither, width);
  return true;
}

/// KTEST: ZF tells that they share no bit, CF that the first has all of the second.
bool and_test(ModelBuilder& b, unsigned width) {
  const auto operands = masks(b);
  if (!operands) return false;
  const Ref first = ModelBuilder::slot(operands->to);
  const Ref both = b.temp_zero_above(width);
  b.op(Op::kAnd, width, {both, first, operands->first});
  const Ref rest = b.temp_zero_above(width);
  b.op(Op::kAndNot, width, {rest, first, operands->first});
  const Ref flags = flags_of_masks(b);
  zero_flag(b, flags, kZf, both, width);
  zero_flag(b, flags, kCf, rest, width);
  return true;
}

/// The test that sets the bit of an element.
struct Test {
  unsigned bits = 0;  ///< The width of an element.
  FieldTest kind = FieldTest::kEqual;
};

/// Elements of vectors are compared; a mask register gets one bit for each.
bool compare(VectorModel& v, Test test, const Operand& first, const Operand* second) {
  ModelBuilder& b = v.builder();
  const ZydisDecodedInstruction& insn = b.decoded().insn;
  const auto to = mask_of(v.operands()[0]);
  if (!to || !ModelBuilder::vector_index(first.reg.value) ||
      insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID) {
    return false;
  }
  const unsigned elements = first.size / test.bits;
  const unsigned each = kLaneBits / test.bits;
  const Lanes x = v.read(first, first.size);
  const Ref zero = b.constant(0);
  const Lanes y = second != nullptr ? v.read(*second, first.size) : Lanes{zero, zero, zero, zero};
  const Ref how = b.constant(coded(test.kind, test.bits));
  const Ref all = b.temp_zero_above(elements);
  for (unsigned i = 0; i < std::min<unsigned>(first.size / kLaneBits, kLanes); ++i) {
    const Ref part = b.evaluated(Function::kTestFields, each, kLaneBits, {x[i], y[i], how});
    b.equal(all, part, each, i * each, 0);
  }
  const auto chosen = ModelBuilder::mask_slot(insn.avx.mask.reg);
  if (!chosen || insn.avx.mask.reg == ZYDIS_REGISTER_K0) {
    b.define(*to, all);
    return true;
  }
  const Ref result = b.temp_zero_above(elements);
  b.op(Op::kAnd, elements, {result, all, ModelBuilder::slot(*chosen)});
  b.define(*to, result);
  return true;
}

/// The predicate of VPCMPx: the low three bits of the immediate.
FieldTest predicate(std::uint64_t immediate, bool is_signed) {
  constexpr std::array kSigned{FieldTest::kEqual,   FieldTest::kLess,     FieldTest::kNotGreater,
                               FieldTest::kNever,   FieldTest::kNotEqual, FieldTest::kNotLess,
                               FieldTest::kGreater, FieldTest::kAlways};
  constexpr std::array kUnsigned{FieldTest::kEqual, FieldTest::kBelow,    FieldTest::kNotAbove,
                                 FieldTest::kNever, FieldTest::kNotEqual, FieldTest::kNotBelow,
                                 FieldTest::kAbove, FieldTest::kAlways};
  return (is_signed ? kSigned : kUnsigned).at(immediate & 7);
}

bool compare_by(ModelBuilder& b, unsigned bits, bool is_signed) {
  VectorModel v{b};
  const auto operands = v.operands();
  if (operands.size() != 4) return false;
  return compare(v, {bits, predicate(operands[3].imm.value.u, is_signed)}, operands[1],
                 &operands[2]);
}

bool compare_as(ModelBuilder& b, unsigned bits, FieldTest kind) {
  VectorModel v{b};
  const auto operands = v.operands();
  return operands.size() == 3 && compare(v, {bits, kind}, operands[1], &operands[2]);
}

/// VPMOVx2M: the signs of the elements.
bool signs(ModelBuilder& b, unsigned bits) {
  VectorModel v{b};
  const auto operands = v.operands();
  return operands.size() == 2 && compare(v, {bits, FieldTest::kLess}, operands[1], nullptr);
}

/// An instruction for each width: B, W, D and Q.
struct MaskInsn {
  std::array<ZydisMnemonic, 4> mnemonics;
  bool (*model)(ModelBuilder&, unsigned width);
};

constexpr std::array kMaskInsns{
    MaskInsn{
        {ZYDIS_MNEMONIC_KMOVB, ZYDIS_MNEMONIC_KMOVW, ZYDIS_MNEMONIC_KMOVD, ZYDIS_MNEMONIC_KMOVQ},
        move},
    MaskInsn{{ZYDIS_MNEMONIC_KORTESTB, ZYDIS_MNEMONIC_KORTESTW, ZYDIS_MNEMONIC_KORTESTD,
              ZYDIS_MNEMONIC_KORTESTQ},
             or_test},
    MaskInsn{{ZYDIS_MNEMONIC_KTESTB, ZYDIS_MNEMONIC_KTESTW, ZYDIS_MNEMONIC_KTESTD,
              ZYDIS_MNEMONIC_KTESTQ},
             and_test},
    MaskInsn{
        {ZYDIS_MNEMONIC_KANDB, ZYDIS_MNEMONIC_KANDW, ZYDIS_MNEMONIC_KANDD, ZYDIS_MNEMONIC_KANDQ},
        [](ModelBuilder& b, unsigned width) { return relate(b, Op::kAnd, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_KANDNB, ZYDIS_MNEMONIC_KANDNW, ZYDIS_MNEMONIC_KANDND,
              ZYDIS_MNEMONIC_KANDNQ},
             [](ModelBuilder& b, unsigned width) { return relate(b, Op::kAndNot, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_KORB, ZYDIS_MNEMONIC_KORW, ZYDIS_MNEMONIC_KORD, ZYDIS_MNEMONIC_KORQ},
             [](ModelBuilder& b, unsigned width) { return relate(b, Op::kOr, width); }},
    MaskInsn{
        {ZYDIS_MNEMONIC_KXORB, ZYDIS_MNEMONIC_KXORW, ZYDIS_MNEMONIC_KXORD, ZYDIS_MNEMONIC_KXORQ},
        [](ModelBuilder& b, unsigned width) { return relate(b, Op::kXor, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_KXNORB, ZYDIS_MNEMONIC_KXNORW, ZYDIS_MNEMONIC_KXNORD,
              ZYDIS_MNEMONIC_KXNORQ},
             exclusive_nor},
    MaskInsn{
        {ZYDIS_MNEMONIC_KNOTB, ZYDIS_MNEMONIC_KNOTW, ZYDIS_MNEMONIC_KNOTD, ZYDIS_MNEMONIC_KNOTQ},
        [](ModelBuilder& b, unsigned width) { return relate(b, Op::kNot, width); }},
    MaskInsn{
        {ZYDIS_MNEMONIC_KADDB, ZYDIS_MNEMONIC_KADDW, ZYDIS_MNEMONIC_KADDD, ZYDIS_MNEMONIC_KADDQ},
        [](ModelBuilder& b, unsigned width) { return relate(b, Op::kAdd, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_KSHIFTLB, ZYDIS_MNEMONIC_KSHIFTLW, ZYDIS_MNEMONIC_KSHIFTLD,
              ZYDIS_MNEMONIC_KSHIFTLQ},
             [](ModelBuilder& b, unsigned width) { return shift(b, true, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_KSHIFTRB, ZYDIS_MNEMONIC_KSHIFTRW, ZYDIS_MNEMONIC_KSHIFTRD,
              ZYDIS_MNEMONIC_KSHIFTRQ},
             [](ModelBuilder& b, unsigned width) { return shift(b, false, width); }},
    MaskInsn{{ZYDIS_MNEMONIC_VPCMPB, ZYDIS_MNEMONIC_VPCMPW, ZYDIS_MNEMONIC_VPCMPD,
              ZYDIS_MNEMONIC_VPCMPQ},
             [](ModelBuilder& b, unsigned bits) { return compare_by(b, bits, true); }},
    MaskInsn{{ZYDIS_MNEMONIC_VPCMPUB, ZYDIS_MNEMONIC_VPCMPUW, ZYDIS_MNEMONIC_VPCMPUD,
              ZYDIS_MNEMONIC_VPCMPUQ},
             [](ModelBuilder& b, unsigned bits) { return compare_by(b, bits, false); }},
    MaskInsn{{ZYDIS_MNEMONIC_VPCMPEQB, ZYDIS_MNEMONIC_VPCMPEQW, ZYDIS_MNEMONIC_VPCMPEQD,
              ZYDIS_MNEMONIC_VPCMPEQQ},
             [](ModelBuilder& b, unsigned bits) { return compare_as(b, bits, FieldTest::kEqual); }},
    MaskInsn{
        {ZYDIS_MNEMONIC_VPCMPGTB, ZYDIS_MNEMONIC_VPCMPGTW, ZYDIS_MNEMONIC_VPCMPGTD,
         ZYDIS_MNEMONIC_VPCMPGTQ},
        [](ModelBuilder& b, unsigned bits) { return compare_as(b, bits, FieldTest::kGreater); }},
    MaskInsn{
        {ZYDIS_MNEMONIC_VPTESTMB, ZYDIS_MNEMONIC_VPTESTMW, ZYDIS_MNEMONIC_VPTESTMD,
         ZYDIS_MNEMONIC_VPTESTMQ},
        [](ModelBuilder& b, unsigned bits) { return compare_as(b, bits, FieldTest::kShareBits); }},
    MaskInsn{
        {ZYDIS_MNEMONIC_VPTESTNMB, ZYDIS_MNEMONIC_VPTESTNMW, ZYDIS_MNEMONIC_VPTESTNMD,
         ZYDIS_MNEMONIC_VPTESTNMQ},
        [](ModelBuilder& b, unsigned bits) { return compare_as(b, bits, FieldTest::kShareNone); }},
    MaskInsn{{ZYDIS_MNEMONIC_VPMOVB2M, ZYDIS_MNEMONIC_VPMOVW2M, ZYDIS_MNEMONIC_VPMOVD2M,
              ZYDIS_MNEMONIC_VPMOVQ2M},
             signs},
};

}  // namespace

bool model_mask(ModelBuilder& b) {
  const ZydisMnemonic mnemonic = b.decoded().insn.mnemonic;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_KUNPCKBW:
      return unpack(b, 8);
    case ZYDIS_MNEMONIC_KUNPCKWD:
      return unpack(b, 16);
    case ZYDIS_MNEMONIC_KUNPCKDQ:
      return unpack(b, 32);
    default:
      break;
  }
  for (const MaskInsn& insn : kMaskInsns) {
    const auto* found = std::ranges::find(insn.mnemonics, mnemonic);
    if (found == insn.mnemonics.end()) continue;
    return insn.model(b, 8U << static_cast<unsigned>(found - insn.mnemonics.begin()));
  }
  return false;
}

}  // namespace backtrail::arch::x86::values
