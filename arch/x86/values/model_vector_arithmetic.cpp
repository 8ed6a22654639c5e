// SPDX-License-Identifier: Apache-2.0
// Logic, comparisons, integer arithmetic and shifts of vectors.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_vectors.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

constexpr unsigned kLaneBits = 64;

bool by_lane(VectorModel& v, Op op) {
  const auto from = v.sources();
  const Operand& to = v.operands()[0];
  if (!from || to.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
  ModelBuilder& b = v.builder();
  const Lanes x = v.read(from->first, to.size);
  const Lanes y = v.read(from->second, to.size);
  Lanes result;
  const bool same = from->second.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                    from->first.reg.value == from->second.reg.value;
  for (unsigned i = 0; i < std::min<unsigned>(to.size / 64, kLanes); ++i) {
    if (same && op == Op::kXor) {
      result[i] = b.constant(0);
      continue;
    }
    result[i] = b.temp();
    b.op(op, 64, {result[i], x[i], y[i]});
  }
  v.write(to, result, to.size);
  return true;
}

enum class Sign : std::uint8_t { kPlus, kMinus };

/// x + y or x - y in each field of `bits` bits.
bool add_fields(VectorModel& v, unsigned bits, Sign sign) {
  const auto from = v.sources();
  const Operand& to = v.operands()[0];
  if (!from) return false;
  ModelBuilder& b = v.builder();
  const Lanes x = v.read(from->first, to.size);
  const Lanes y = v.read(from->second, to.size);
  Lanes result;
  for (unsigned i = 0; i < std::min<unsigned>(to.size / kLaneBits, kLanes); ++i) {
    result[i] = b.temp();
    const Ref sum = sign == Sign::kPlus ? result[i] : x[i];
    const Ref part = sign == Sign::kPlus ? x[i] : result[i];
    if (bits == kLaneBits) {
      b.op(Op::kAdd, bits, {sum, part, y[i]});
    } else {
      b.op(Op::kAddFields, kLaneBits, {sum, part, y[i]}, bits);
    }
  }
  v.write(to, result, to.size);
  return true;
}

bool evaluated_lanes(VectorModel& v, Function function) {
  const auto from = v.sources();
  const Operand& to = v.operands()[0];
  if (!from || !ModelBuilder::vector_index(to.reg.value)) return false;
  ModelBuilder& b = v.builder();
  const Lanes x = v.read(from->first, to.size);
  const Lanes y = v.read(from->second, to.size);
  Lanes result;
  for (unsigned i = 0; i < std::min<unsigned>(to.size / 64, kLanes); ++i) {
    if (function == Function::kShuffleBytes) {
      const unsigned half = i & ~1U;
      result[i] = b.evaluated(function, 64, 64, {y[i], x[half], x[half + 1]});
    } else {
      result[i] = b.evaluated(function, 64, 64, {x[i], y[i]});
    }
  }
  v.write(to, result, to.size);
  return true;
}

/// VPTERNLOGx: the immediate is a truth table of the three operands.
bool ternary(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 4) return false;
  ModelBuilder& b = v.builder();
  const Operand& to = operands[0];
  const std::uint64_t table = operands[3].imm.value.u & 0xff;
  const Lanes x = v.read(to, to.size);
  const Lanes y = v.read(operands[1], to.size);
  const Lanes z = v.read(operands[2], to.size);
  Lanes result;
  for (unsigned i = 0; i < std::min<unsigned>(to.size / kLaneBits, kLanes); ++i) {
    const bool is_constant = table == 0 || table == 0xff;
    result[i] = is_constant ? b.constant(table == 0 ? 0 : ~std::uint64_t{0})
                            : b.evaluated(Function::kTernary, kLaneBits, kLaneBits,
                                          {x[i], y[i], z[i], b.constant(table)});
  }
  v.write(to, result, to.size);
  return true;
}

bool byte_mask(VectorModel& v) {
  const auto operands = v.operands();
  ModelBuilder& b = v.builder();
  const Operand& from = operands[1];
  if (!ModelBuilder::vector_index(from.reg.value)) return false;
  const auto lane = [&](unsigned i) { return v.lane(from, i); };
  const Ref mask = from.size == 256 ? b.evaluated(Function::kByteMask, 64, 64,
                                                  {lane(0), lane(1), lane(2), lane(3)})
                                    : b.evaluated(Function::kByteMask, 64, 64, {lane(0), lane(1)});
  b.write(operands[0], mask);
  return true;
}

/// PSRLDQ and PSLLDQ: shift each 128 bits by whole bytes.
bool shift_bytes(VectorModel& v, bool left) {
  const auto operands = v.operands();
  const Operand& to = operands[0];
  if (to.size > 256 || operands.back().type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
  ModelBuilder& b = v.builder();
  const auto bytes =
      static_cast<unsigned>(std::min<std::uint64_t>(operands.back().imm.value.u, 16));
  const Lanes from = v.read(operands[operands.size() - 2], to.size);
  Lanes result;
  for (unsigned lane = 0; lane < to.size / 64U; ++lane) {
    const unsigned half = lane & ~1U;
    result[lane] = b.temp();
    for (unsigned byte = 0; byte < 8; ++byte) {
      const unsigned at = (lane & 1) * 8 + byte;
      const bool inside = left ? at >= bytes : at + bytes < 16;
      if (!inside) {
        b.initially(result[lane], 0, std::uint64_t{0xff} << (8 * byte));
        continue;
      }
      const unsigned source = left ? at - bytes : at + bytes;
      b.equal(result[lane], from[half + source / 8], 8, 8 * byte, 8 * (source % 8));
    }
  }
  v.write(to, result, to.size);
  return true;
}

/// PMULLx: the low halves of the products.
bool multiply_fields(VectorModel& v, unsigned bits) {
  const auto from = v.sources();
  const Operand& to = v.operands()[0];
  if (!from) return false;
  const Lanes x = v.read(from->first, to.size);
  const Lanes y = v.read(from->second, to.size);
  Lanes result;
  for (unsigned i = 0; i < std::min<unsigned>(to.size / kLaneBits, kLanes); ++i) {
    result[i] = v.builder().temp();
    v.builder().op(Op::kMultiplyFields, kLaneBits, {result[i], x[i], y[i]}, bits);
  }
  v.write(to, result, to.size);
  return true;
}

enum class Shift : std::uint8_t { kLeft, kRight, kRightArithmetic };

/// PSLLx, PSRLx and PSRAx by an immediate.
bool shift_fields(VectorModel& v, unsigned bits, Shift shift) {
  const auto operands = v.operands();
  const Operand& to = operands[0];
  if (to.size > 256 || operands.back().type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
  ModelBuilder& b = v.builder();
  const auto by = static_cast<unsigned>(std::min<std::uint64_t>(operands.back().imm.value.u, bits));
  const bool left = shift == Shift::kLeft;
  const bool copies_sign = shift == Shift::kRightArithmetic;
  const Lanes from = v.read(operands[operands.size() - 2], to.size);
  Lanes result;
  for (unsigned lane = 0; lane < to.size / kLaneBits; ++lane) {
    result[lane] = b.temp();
    for (unsigned at = 0; at < kLaneBits; at += bits) {
      const unsigned kept = bits - by;
      if (copies_sign) {
        b.op(Op::kFill, at + bits, {result[lane], from[lane]}, at + kept, at + bits - 1);
      } else {
        const std::uint64_t zeros = left ? low_bits(by) : low_bits(bits) & ~low_bits(kept);
        b.initially(result[lane], 0, zeros << at);
      }
      if (kept == 0) continue;
      b.equal(result[lane], from[lane], kept, at + (left ? by : 0), at + (left ? 0 : by));
    }
  }
  v.write(to, result, to.size);
  return true;
}

bool logic(VectorModel& v, ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VPXORD:
    case ZYDIS_MNEMONIC_VPXORQ:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
      return by_lane(v, Op::kXor);
    case ZYDIS_MNEMONIC_PAND:
    case ZYDIS_MNEMONIC_ANDPS:
    case ZYDIS_MNEMONIC_ANDPD:
    case ZYDIS_MNEMONIC_VPAND:
    case ZYDIS_MNEMONIC_VPANDD:
    case ZYDIS_MNEMONIC_VPANDQ:
    case ZYDIS_MNEMONIC_VANDPS:
    case ZYDIS_MNEMONIC_VANDPD:
      return by_lane(v, Op::kAnd);
    case ZYDIS_MNEMONIC_POR:
    case ZYDIS_MNEMONIC_ORPS:
    case ZYDIS_MNEMONIC_ORPD:
    case ZYDIS_MNEMONIC_VPOR:
    case ZYDIS_MNEMONIC_VPORD:
    case ZYDIS_MNEMONIC_VPORQ:
    case ZYDIS_MNEMONIC_VORPS:
    case ZYDIS_MNEMONIC_VORPD:
      return by_lane(v, Op::kOr);
    case ZYDIS_MNEMONIC_PANDN:
    case ZYDIS_MNEMONIC_ANDNPS:
    case ZYDIS_MNEMONIC_ANDNPD:
    case ZYDIS_MNEMONIC_VPANDN:
    case ZYDIS_MNEMONIC_VPANDND:
    case ZYDIS_MNEMONIC_VPANDNQ:
    case ZYDIS_MNEMONIC_VANDNPS:
    case ZYDIS_MNEMONIC_VANDNPD:
      return by_lane(v, Op::kAndNot);
    default:
      return false;
  }
}

bool arithmetic(VectorModel& v, ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PADDB:
    case ZYDIS_MNEMONIC_VPADDB:
      return add_fields(v, 8, Sign::kPlus);
    case ZYDIS_MNEMONIC_PADDW:
    case ZYDIS_MNEMONIC_VPADDW:
      return add_fields(v, 16, Sign::kPlus);
    case ZYDIS_MNEMONIC_PADDD:
    case ZYDIS_MNEMONIC_VPADDD:
      return add_fields(v, 32, Sign::kPlus);
    case ZYDIS_MNEMONIC_PADDQ:
    case ZYDIS_MNEMONIC_VPADDQ:
      return add_fields(v, 64, Sign::kPlus);
    case ZYDIS_MNEMONIC_PSUBB:
    case ZYDIS_MNEMONIC_VPSUBB:
      return add_fields(v, 8, Sign::kMinus);
    case ZYDIS_MNEMONIC_PSUBW:
    case ZYDIS_MNEMONIC_VPSUBW:
      return add_fields(v, 16, Sign::kMinus);
    case ZYDIS_MNEMONIC_PSUBD:
    case ZYDIS_MNEMONIC_VPSUBD:
      return add_fields(v, 32, Sign::kMinus);
    case ZYDIS_MNEMONIC_PSUBQ:
    case ZYDIS_MNEMONIC_VPSUBQ:
      return add_fields(v, 64, Sign::kMinus);
    case ZYDIS_MNEMONIC_PMULLW:
    case ZYDIS_MNEMONIC_VPMULLW:
      return multiply_fields(v, 16);
    case ZYDIS_MNEMONIC_PMULLD:
    case ZYDIS_MNEMONIC_VPMULLD:
      return multiply_fields(v, 32);
    default:
      return false;
  }
}

std::optional<Function> lane_function(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PCMPEQB:
    case ZYDIS_MNEMONIC_VPCMPEQB:
      return Function::kBytesEqual;
    case ZYDIS_MNEMONIC_PCMPEQW:
    case ZYDIS_MNEMONIC_VPCMPEQW:
      return Function::kWordsEqual;
    case ZYDIS_MNEMONIC_PCMPEQD:
    case ZYDIS_MNEMONIC_VPCMPEQD:
      return Function::kDwordsEqual;
    case ZYDIS_MNEMONIC_PCMPEQQ:
    case ZYDIS_MNEMONIC_VPCMPEQQ:
      return Function::kQwordsEqual;
    case ZYDIS_MNEMONIC_PCMPGTB:
    case ZYDIS_MNEMONIC_VPCMPGTB:
      return Function::kBytesGreater;
    case ZYDIS_MNEMONIC_PCMPGTW:
    case ZYDIS_MNEMONIC_VPCMPGTW:
      return Function::kWordsGreater;
    case ZYDIS_MNEMONIC_PCMPGTD:
    case ZYDIS_MNEMONIC_VPCMPGTD:
      return Function::kDwordsGreater;
    case ZYDIS_MNEMONIC_PMINUB:
    case ZYDIS_MNEMONIC_VPMINUB:
      return Function::kBytesMinimum;
    case ZYDIS_MNEMONIC_PMAXUB:
    case ZYDIS_MNEMONIC_VPMAXUB:
      return Function::kBytesMaximum;
    case ZYDIS_MNEMONIC_PSHUFB:
    case ZYDIS_MNEMONIC_VPSHUFB:
      return Function::kShuffleBytes;
    case ZYDIS_MNEMONIC_PMULUDQ:
    case ZYDIS_MNEMONIC_VPMULUDQ:
      return Function::kMultiplyDwordsUnsigned;
    default:
      return std::nullopt;
  }
}

bool fixed_shift(VectorModel& v, ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PSRLDQ:
    case ZYDIS_MNEMONIC_VPSRLDQ:
      return shift_bytes(v, false);
    case ZYDIS_MNEMONIC_PSLLDQ:
    case ZYDIS_MNEMONIC_VPSLLDQ:
      return shift_bytes(v, true);
    case ZYDIS_MNEMONIC_PSRLW:
    case ZYDIS_MNEMONIC_VPSRLW:
      return shift_fields(v, 16, Shift::kRight);
    case ZYDIS_MNEMONIC_PSRLD:
    case ZYDIS_MNEMONIC_VPSRLD:
      return shift_fields(v, 32, Shift::kRight);
    case ZYDIS_MNEMONIC_PSRLQ:
    case ZYDIS_MNEMONIC_VPSRLQ:
      return shift_fields(v, 64, Shift::kRight);
    case ZYDIS_MNEMONIC_PSRAW:
    case ZYDIS_MNEMONIC_VPSRAW:
      return shift_fields(v, 16, Shift::kRightArithmetic);
    case ZYDIS_MNEMONIC_PSRAD:
    case ZYDIS_MNEMONIC_VPSRAD:
      return shift_fields(v, 32, Shift::kRightArithmetic);
    case ZYDIS_MNEMONIC_PSLLW:
    case ZYDIS_MNEMONIC_VPSLLW:
      return shift_fields(v, 16, Shift::kLeft);
    case ZYDIS_MNEMONIC_PSLLD:
    case ZYDIS_MNEMONIC_VPSLLD:
      return shift_fields(v, 32, Shift::kLeft);
    case ZYDIS_MNEMONIC_PSLLQ:
    case ZYDIS_MNEMONIC_VPSLLQ:
      return shift_fields(v, 64, Shift::kLeft);
    default:
      return false;
  }
}

}  // namespace

bool model_vector_arithmetic(ModelBuilder& b) {
  VectorModel v{b};
  const auto operands = v.operands();
  if (operands.empty() || operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || !v.usable()) {
    return false;
  }
  const ZydisMnemonic mnemonic = b.decoded().insn.mnemonic;
  if (mnemonic == ZYDIS_MNEMONIC_PMOVMSKB || mnemonic == ZYDIS_MNEMONIC_VPMOVMSKB) {
    return byte_mask(v);
  }
  if (!ModelBuilder::vector_index(operands[0].reg.value) || operands[0].size > 256) return false;
  if (mnemonic == ZYDIS_MNEMONIC_VPTERNLOGD || mnemonic == ZYDIS_MNEMONIC_VPTERNLOGQ) {
    return ternary(v);
  }
  if (const auto function = lane_function(mnemonic)) return evaluated_lanes(v, *function);
  return logic(v, mnemonic) || arithmetic(v, mnemonic) || fixed_shift(v, mnemonic);
}

}  // namespace backtrail::arch::x86::values
