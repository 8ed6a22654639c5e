// SPDX-License-Identifier: Apache-2.0
// Permutations of vectors: results whose fields are fields of the sources.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_vectors.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

/// The source of one field of a result: bit `at` of source 0 or 1.
struct Field {
  unsigned source = 0;
  unsigned at = 0;
};

/// Builds a result whose fields of `bits` bits, in each 128 bits, are fields of the sources.
template <typename Pick>
bool permute(VectorModel& v, const Operand& first, const Operand& second, unsigned bits,
             Pick&& pick) {
  const Operand& to = v.operands()[0];
  if (!ModelBuilder::vector_index(to.reg.value) || to.size > 256) return false;
  ModelBuilder& b = v.builder();
  const std::array<Lanes, 2> from{v.read(first, to.size), v.read(second, to.size)};
  Lanes result;
  for (unsigned lane = 0; lane < to.size / 64U; ++lane) {
    const unsigned half = lane & ~1U;
    if (bits == 64) {
      const Field field = pick(lane & 1);
      result[lane] = from[field.source][half + field.at / 64];
      continue;
    }
    result[lane] = b.temp();
    for (unsigned at = 0; at < 64; at += bits) {
      const Field field = pick(((lane & 1) * 64 + at) / bits);
      b.equal(result[lane], from[field.source][half + field.at / 64], bits, at, field.at % 64);
    }
  }
  v.write(to, result, to.size);
  return true;
}

/// PUNPCKx: fields of both sources in turn, from their low or high halves.
bool interleave(VectorModel& v, unsigned bits, bool high) {
  const auto from = v.sources();
  if (!from) return false;
  return permute(v, from->first, from->second, bits, [&](unsigned field) {
    return Field{field % 2, (high ? 64 : 0) + field / 2 * bits};
  });
}

/// PSHUFD: two bits of the immediate select each field.
bool shuffle_dwords(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 3) return false;
  const auto by = static_cast<unsigned>(operands[2].imm.value.u);
  return permute(v, operands[1], operands[1], 32, [&](unsigned field) {
    return Field{0, (by >> (2 * field) & 3) * 32};
  });
}

/// SHUFPS and SHUFPD.
bool shuffle_two(VectorModel& v, unsigned bits) {
  const auto operands = v.operands();
  const std::size_t count = operands.size();
  if ((count != 3 && count != 4) || operands[0].size != 128) return false;
  const Operand& first = operands[count == 4 ? 1 : 0];
  const Operand& second = operands[count == 4 ? 2 : 1];
  const auto by = static_cast<unsigned>(operands[count - 1].imm.value.u);
  if (bits == 64) {
    return permute(v, first, second, 64, [&](unsigned field) {
      return Field{field, (by >> field & 1) * 64};
    });
  }
  return permute(v, first, second, 32, [&](unsigned field) {
    return Field{field / 2, (by >> (2 * field) & 3) * 32};
  });
}

bool duplicate_low(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 2 || operands[0].size != 128) return false;
  ModelBuilder& b = v.builder();
  Ref value = v.lane(operands[1], 0);
  if (ModelBuilder::is_memory(operands[1])) {
    value = b.temp();
    b.load(b.address(operands[1]), value, 8);
  }
  const Ref zero = b.constant(0);
  v.write(operands[0], {value, value, zero, zero}, 128);
  return true;
}

/// VPERMQ: two bits of the immediate select each lane.
bool permute_lanes(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 3 || operands[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
      operands[0].size != 256) {
    return false;
  }
  const Lanes from = v.read(operands[1], 256);
  const auto by = static_cast<unsigned>(operands[2].imm.value.u);
  v.write(operands[0], {from[by & 3], from[by >> 2U & 3], from[by >> 4U & 3], from[by >> 6U & 3]},
          256);
  return true;
}

bool permutation(VectorModel& v, ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PUNPCKLBW:
    case ZYDIS_MNEMONIC_VPUNPCKLBW:
      return interleave(v, 8, false);
    case ZYDIS_MNEMONIC_PUNPCKHBW:
    case ZYDIS_MNEMONIC_VPUNPCKHBW:
      return interleave(v, 8, true);
    case ZYDIS_MNEMONIC_PUNPCKLWD:
    case ZYDIS_MNEMONIC_VPUNPCKLWD:
      return interleave(v, 16, false);
    case ZYDIS_MNEMONIC_PUNPCKHWD:
    case ZYDIS_MNEMONIC_VPUNPCKHWD:
      return interleave(v, 16, true);
    case ZYDIS_MNEMONIC_PUNPCKLDQ:
    case ZYDIS_MNEMONIC_VPUNPCKLDQ:
    case ZYDIS_MNEMONIC_UNPCKLPS:
    case ZYDIS_MNEMONIC_VUNPCKLPS:
      return interleave(v, 32, false);
    case ZYDIS_MNEMONIC_PUNPCKHDQ:
    case ZYDIS_MNEMONIC_VPUNPCKHDQ:
    case ZYDIS_MNEMONIC_UNPCKHPS:
    case ZYDIS_MNEMONIC_VUNPCKHPS:
      return interleave(v, 32, true);
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_VUNPCKLPD:
      return interleave(v, 64, false);
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_VPUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKHPD:
    case ZYDIS_MNEMONIC_VUNPCKHPD:
      return interleave(v, 64, true);
    case ZYDIS_MNEMONIC_PSHUFD:
    case ZYDIS_MNEMONIC_VPSHUFD:
      return shuffle_dwords(v);
    case ZYDIS_MNEMONIC_SHUFPS:
    case ZYDIS_MNEMONIC_VSHUFPS:
      return shuffle_two(v, 32);
    case ZYDIS_MNEMONIC_SHUFPD:
    case ZYDIS_MNEMONIC_VSHUFPD:
      return shuffle_two(v, 64);
    case ZYDIS_MNEMONIC_MOVDDUP:
    case ZYDIS_MNEMONIC_VMOVDDUP:
      return duplicate_low(v);
    case ZYDIS_MNEMONIC_VPERMQ:
    case ZYDIS_MNEMONIC_VPERMPD:
      return permute_lanes(v);
    default:
      return false;
  }
}

}  // namespace

bool model_vector_permutation(ModelBuilder& b) {
  VectorModel v{b};
  const auto operands = v.operands();
  return !operands.empty() && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && v.usable() &&
         ModelBuilder::vector_index(operands[0].reg.value) && operands[0].size <= 256 &&
         permutation(v, b.decoded().insn.mnemonic);
}

}  // namespace backtrail::arch::x86::values
