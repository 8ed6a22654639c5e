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
  // Without MPX (every CPU and kernel of today) 0F 1A and 0F 1B are NOPs with any operand.
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

}  // namespace backtrail::arch::x86
