// SPDX-License-Identifier: Apache-2.0
#include <Zydis/Zydis.h>

#include "arch/x86/values/insn_model.hpp"
#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {
namespace {

bool decode(TraceeAddr pc, std::span<const std::uint8_t> bytes, Decoded& decoded) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&made, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    return made;
  }();
  decoded.pc = pc;
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &decoded.insn,
                                             decoded.operands.data()));
}

/// Returns true for instructions that may be half done when they fault: gathers, scatters, masked
/// and state-saving ones, and ENTER, which may push several words.
bool may_be_half_done(const Decoded& decoded) {
  if (decoded.insn.mnemonic == ZYDIS_MNEMONIC_ENTER) return true;
  switch (decoded.insn.meta.category) {
    case ZYDIS_CATEGORY_AVX2GATHER:
    case ZYDIS_CATEGORY_GATHER:
    case ZYDIS_CATEGORY_SCATTER:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
      return true;
    default:
      return decoded.insn.meta.isa_ext == ZYDIS_ISA_EXT_XSAVE;
  }
}

}  // namespace

InsnModel model_insn(TraceeAddr pc, std::span<const std::uint8_t> bytes, std::uint64_t components) {
  Decoded decoded;
  if (!decode(pc, bytes, decoded)) return {};
  ModelBuilder b{decoded, components};
  using Model = bool (*)(ModelBuilder&);
  constexpr Model kModels[] = {model_string,
                               model_move,
                               model_arithmetic,
                               model_control,
                               model_stack,
                               model_shift,
                               model_multiply,
                               model_vector_move,
                               model_vector_arithmetic,
                               model_vector_permutation,
                               model_mask,
                               model_system};
  bool done = false;
  for (const Model model : kModels) {
    if (model(b)) {
      done = true;
      break;
    }
    b.restart();
  }
  if (!done) b.model_unknown();
  InsnModel model = b.take();
  model.restartable |= may_be_half_done(decoded);
  return model;
}

InsnModel model_interrupted(TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  Decoded decoded;
  if (!decode(pc, bytes, decoded)) return {};
  ModelBuilder b{decoded, 0};
  if (model_interrupted_string(b)) return b.take();
  b.model_unknown();
  for (const ZydisDecodedOperand& operand : decoded.all()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
      b.store_anywhere();
      break;
    }
  }
  InsnModel model = b.take();
  model.restartable = true;
  return model;
}

}  // namespace backtrail::arch::x86::values
