// SPDX-License-Identifier: Apache-2.0
// Moves of vector registers. Legacy SSE preserves the lanes above 128 bits; VEX and EVEX clear
// them.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_vectors.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

bool whole_move(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 2) return false;
  const unsigned bits = std::max(operands[0].size, operands[1].size);
  const Lanes lanes = v.read(operands[1], bits);
  v.write(operands[0], lanes, bits);
  return true;
}

/// MOVD and MOVQ.
bool small_move(VectorModel& v, unsigned bits) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  if (operands.size() != 2) return false;
  const auto from = ModelBuilder::is_memory(operands[1]) || ModelBuilder::is_general(operands[1])
                        ? b.read(operands[1])
                        : v.lane(operands[1], 0);
  if (from.none()) return false;
  const Ref value = b.temp_zero_above(bits);
  b.equal(value, from, bits);
  if (ModelBuilder::is_memory(operands[0])) {
    b.store(b.address(operands[0]), value, bits / 8);
    return true;
  }
  if (ModelBuilder::is_general(operands[0])) {
    b.write(operands[0], value);
    return true;
  }
  if (!ModelBuilder::vector_index(operands[0].reg.value)) return false;
  const Ref zero = b.constant(0);
  v.write(operands[0], {value, zero, zero, zero}, 128);
  return true;
}

/// MOVSS and MOVSD.
bool scalar_move(VectorModel& v, unsigned bits) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  const Ref zero = b.constant(0);
  if (ModelBuilder::is_memory(operands[0])) {
    b.store(b.address(operands[0]), v.lane(operands[1], 0), bits / 8);
    return true;
  }
  if (ModelBuilder::is_memory(operands[1])) {
    const Ref value = b.temp_zero_above(bits);
    b.load(b.address(operands[1]), value, bits / 8);
    v.write(operands[0], {value, zero, zero, zero}, 128);
    return true;
  }
  const Operand& low = operands.back();
  const Operand& rest = operands.size() == 3 ? operands[1] : operands[0];
  Ref merged = v.lane(low, 0);
  if (bits == 32) {
    merged = b.temp();
    b.equal(merged, v.lane(low, 0), 32);
    b.equal(merged, v.lane(rest, 0), 32, 32, 32);
  }
  v.write(operands[0], {merged, v.lane(rest, 1), zero, zero}, 128);
  return true;
}

/// MOVLPS, MOVHPS and the double forms.
bool half_move(VectorModel& v, unsigned half) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  if (ModelBuilder::is_memory(operands[0])) {
    b.store(b.address(operands[0]), v.lane(operands[1], half), 8);
    return true;
  }
  const Operand& from = operands.back();
  const Operand& rest = operands.size() == 3 ? operands[1] : operands[0];
  if (!ModelBuilder::is_memory(from)) return false;
  const Ref value = b.temp();
  b.load(b.address(from), value, 8);
  const Ref zero = b.constant(0);
  Lanes lanes{v.lane(rest, 0), v.lane(rest, 1), zero, zero};
  lanes[half] = value;
  v.write(operands[0], lanes, 128);
  return true;
}

/// MOVLHPS and MOVHLPS.
bool cross_move(VectorModel& v, bool to_high) {
  const auto operands = v.operands();
  const Operand& from = operands.back();
  const Operand& rest = operands.size() == 3 ? operands[1] : operands[0];
  const Ref zero = v.builder().constant(0);
  if (to_high) {
    v.write(operands[0], {v.lane(rest, 0), v.lane(from, 0), zero, zero}, 128);
  } else {
    v.write(operands[0], {v.lane(from, 1), v.lane(rest, 1), zero, zero}, 128);
  }
  return true;
}

bool clear_upper(VectorModel& v) {
  ModelBuilder& b = v.builder();
  const bool everything = b.decoded().insn.mnemonic == ZYDIS_MNEMONIC_VZEROALL;
  for (unsigned reg = 0; reg < 16; ++reg) {
    for (unsigned lane = everything ? 0 : 2; lane < kLanes; ++lane) {
      b.define(vector_slot(reg, lane), b.constant(0));
    }
  }
  return true;
}

/// PINSRx: one element of the register comes from a general register or memory.
bool insert(VectorModel& v, unsigned bits) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  const Operand& position = operands.back();
  const Operand& from = operands[operands.size() - 2];
  const Operand& rest = operands.size() == 4 ? operands[1] : operands[0];
  const auto at = static_cast<unsigned>(position.imm.value.u % (128 / bits)) * bits;
  Ref value;
  if (ModelBuilder::is_memory(from)) {
    value = b.temp();
    b.load(b.address(from), value, bits / 8);
  } else {
    value = b.read(from);
  }
  const Ref zero = b.constant(0);
  Lanes lanes{v.lane(rest, 0), v.lane(rest, 1), zero, zero};
  const unsigned lane = at / 64;
  const unsigned shift = at % 64;
  const Ref merged = b.temp();
  b.equal(merged, value, bits, shift, 0);
  if (shift != 0) b.equal(merged, lanes[lane], shift);
  if (shift + bits < 64) {
    b.equal(merged, lanes[lane], 64 - shift - bits, shift + bits, shift + bits);
  }
  lanes[lane] = merged;
  v.write(operands[0], lanes, 128);
  return true;
}

bool extract(VectorModel& v, unsigned bits) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  if (operands.size() != 3) return false;
  const auto at = static_cast<unsigned>(operands[2].imm.value.u % (128 / bits)) * bits;
  const Ref value = b.temp_zero_above(bits);
  b.equal(value, v.lane(operands[1], at / 64), bits, 0, at % 64);
  if (ModelBuilder::is_memory(operands[0])) {
    b.store(b.address(operands[0]), value, bits / 8);
  } else {
    b.write(operands[0], value);
  }
  return true;
}

bool insert_half(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 4 || operands[0].size != 256) return false;
  const Lanes half = v.read(operands[2], 128);
  Lanes lanes = v.read(operands[1], 256);
  const unsigned at = (operands[3].imm.value.u & 1) != 0 ? 2 : 0;
  lanes[at] = half[0];
  lanes[at + 1] = half[1];
  v.write(operands[0], lanes, 256);
  return true;
}

bool extract_half(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 3 || operands[1].size != 256) return false;
  const unsigned at = (operands[2].imm.value.u & 1) != 0 ? 2 : 0;
  const Ref zero = v.builder().constant(0);
  v.write(operands[0], {v.lane(operands[1], at), v.lane(operands[1], at + 1), zero, zero}, 128);
  return true;
}

/// Copies one element of `bits` bits to every place.
bool broadcast(VectorModel& v, unsigned bits) {
  ModelBuilder& b = v.builder();
  const auto operands = v.operands();
  if (operands.size() != 2) return false;
  Ref value;
  if (ModelBuilder::is_memory(operands[1])) {
    value = b.temp();
    b.load(b.address(operands[1]), value, bits / 8);
  } else if (ModelBuilder::is_general(operands[1])) {
    value = b.read(operands[1]);
  } else {
    value = v.lane(operands[1], 0);
  }
  Ref lane = value;
  if (bits != 64) {
    lane = b.temp();
    for (unsigned at = 0; at < 64; at += bits) b.equal(lane, value, bits, at, 0);
  }
  v.write(operands[0], {lane, lane, lane, lane}, operands[0].size);
  return true;
}

bool broadcast_half(VectorModel& v) {
  const auto operands = v.operands();
  if (operands.size() != 2 || operands[0].size != 256) return false;
  const Lanes half = v.read(operands[1], 128);
  v.write(operands[0], {half[0], half[1], half[0], half[1]}, 256);
  return true;
}

bool is_whole_move(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VMOVDQA32:
    case ZYDIS_MNEMONIC_VMOVDQA64:
    case ZYDIS_MNEMONIC_VMOVDQU8:
    case ZYDIS_MNEMONIC_VMOVDQU16:
    case ZYDIS_MNEMONIC_VMOVDQU32:
    case ZYDIS_MNEMONIC_VMOVDQU64:
    case ZYDIS_MNEMONIC_VLDDQU:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
      return true;
    default:
      return false;
  }
}

bool partial_move(VectorModel& v, ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_VMOVD:
      return small_move(v, 32);
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_VMOVQ:
      return small_move(v, 64);
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_VMOVSS:
      return scalar_move(v, 32);
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_VMOVSD:
      return scalar_move(v, 64);
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
    case ZYDIS_MNEMONIC_VMOVLPS:
    case ZYDIS_MNEMONIC_VMOVLPD:
      return half_move(v, 0);
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
    case ZYDIS_MNEMONIC_VMOVHPS:
    case ZYDIS_MNEMONIC_VMOVHPD:
      return half_move(v, 1);
    case ZYDIS_MNEMONIC_MOVLHPS:
    case ZYDIS_MNEMONIC_VMOVLHPS:
      return cross_move(v, true);
    case ZYDIS_MNEMONIC_MOVHLPS:
    case ZYDIS_MNEMONIC_VMOVHLPS:
      return cross_move(v, false);
    case ZYDIS_MNEMONIC_VZEROALL:
    case ZYDIS_MNEMONIC_VZEROUPPER:
      return clear_upper(v);
    default:
      return false;
  }
}

}  // namespace

bool model_vector_move(ModelBuilder& b) {
  VectorModel v{b};
  const ZydisMnemonic mnemonic = b.decoded().insn.mnemonic;
  if (!v.usable()) return false;
  if (is_whole_move(mnemonic)) return whole_move(v);
  if (partial_move(v, mnemonic)) return true;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PINSRB:
    case ZYDIS_MNEMONIC_VPINSRB:
      return insert(v, 8);
    case ZYDIS_MNEMONIC_PINSRW:
    case ZYDIS_MNEMONIC_VPINSRW:
      return insert(v, 16);
    case ZYDIS_MNEMONIC_PINSRD:
    case ZYDIS_MNEMONIC_VPINSRD:
      return insert(v, 32);
    case ZYDIS_MNEMONIC_PINSRQ:
    case ZYDIS_MNEMONIC_VPINSRQ:
      return insert(v, 64);
    case ZYDIS_MNEMONIC_PEXTRD:
    case ZYDIS_MNEMONIC_VPEXTRD:
      return extract(v, 32);
    case ZYDIS_MNEMONIC_PEXTRQ:
    case ZYDIS_MNEMONIC_VPEXTRQ:
      return extract(v, 64);
    case ZYDIS_MNEMONIC_VINSERTI128:
    case ZYDIS_MNEMONIC_VINSERTF128:
      return insert_half(v);
    case ZYDIS_MNEMONIC_VEXTRACTI128:
    case ZYDIS_MNEMONIC_VEXTRACTF128:
      return extract_half(v);
    case ZYDIS_MNEMONIC_VPBROADCASTB:
      return broadcast(v, 8);
    case ZYDIS_MNEMONIC_VPBROADCASTW:
      return broadcast(v, 16);
    case ZYDIS_MNEMONIC_VPBROADCASTD:
    case ZYDIS_MNEMONIC_VBROADCASTSS:
      return broadcast(v, 32);
    case ZYDIS_MNEMONIC_VPBROADCASTQ:
    case ZYDIS_MNEMONIC_VBROADCASTSD:
      return broadcast(v, 64);
    case ZYDIS_MNEMONIC_VBROADCASTI128:
    case ZYDIS_MNEMONIC_VBROADCASTF128:
      return broadcast_half(v);
    default:
      return false;
  }
}

}  // namespace backtrail::arch::x86::values
