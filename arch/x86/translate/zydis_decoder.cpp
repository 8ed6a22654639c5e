// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/zydis_decoder.hpp"

namespace backtrail::arch::x86::translate {

const ZydisDecoder& zydis_decoder() {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    // Without MPX, as on all current CPUs and kernels, 0F 1A and 0F 1B are NOPs with any operand.
    ZydisDecoderEnableMode(&made, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    return made;
  }();
  return decoder;
}

}  // namespace backtrail::arch::x86::translate
