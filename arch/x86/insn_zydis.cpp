// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <Zydis/Zydis.h>

#include "arch/x86/insn_length.hpp"

namespace backtrail::arch::x86 {
namespace {

ZydisDecoder make_decoder(Isa isa, NearBranchRule rule) {
  ZydisDecoder decoder;
  if (isa == Isa::kI386) {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
  } else {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }
  ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES,
                         rule == NearBranchRule::kAmd ? ZYAN_TRUE : ZYAN_FALSE);
  // Without MPX, as on every present CPU and kernel, 0F 1A and 0F 1B are NOPs with any operand.
  ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
  return decoder;
}

}  // namespace

std::uint8_t zydis_length(Isa isa, NearBranchRule rule, std::span<const std::uint8_t> bytes) {
  static const ZydisDecoder decoders[] = {
      make_decoder(Isa::kAmd64, NearBranchRule::kIntel),
      make_decoder(Isa::kAmd64, NearBranchRule::kAmd),
      make_decoder(Isa::kI386, NearBranchRule::kIntel),
      make_decoder(Isa::kI386, NearBranchRule::kAmd),
  };
  const std::size_t index =
      (isa == Isa::kI386 ? 2U : 0U) + (rule == NearBranchRule::kAmd ? 1U : 0U);
  ZydisDecoderContext context;
  ZydisDecodedInstruction insn;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoders[index], &context, bytes.data(),
                                                  bytes.size(), &insn))) {
    return 0;
  }
  return insn.length;
}

std::string zydis_text(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  const ZydisDecoder decoder = make_decoder(isa, NearBranchRule::kIntel);
  ZydisDecodedInstruction insn;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  ZydisFormatter formatter;
  std::array<char, 256> text{};
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &insn, operands.data())) ||
      !ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &insn, operands.data(),
                                                    insn.operand_count_visible, text.data(),
                                                    text.size(), pc.value(), nullptr))) {
    return {};
  }
  return text.data();
}

}  // namespace backtrail::arch::x86
