// SPDX-License-Identifier: Apache-2.0
// Loads Zydis's functions on first use: a run from the persistent cache needs none of them.

#include <Zydis/Zydis.h>

#include "arch/base/lazy_library.hpp"

using backtrail::call_lazily;

extern "C" {

ZyanStatus ZydisDecoderInit(ZydisDecoder* decoder, ZydisMachineMode mode, ZydisStackWidth width) {
  return call_lazily<&ZydisDecoderInit>(BT_ZYDIS, "ZydisDecoderInit", decoder, mode, width);
}
ZyanStatus ZydisDecoderEnableMode(ZydisDecoder* decoder, ZydisDecoderMode mode, ZyanBool on) {
  return call_lazily<&ZydisDecoderEnableMode>(BT_ZYDIS, "ZydisDecoderEnableMode", decoder, mode,
                                              on);
}
ZyanStatus ZydisDecoderDecodeFull(const ZydisDecoder* decoder, const void* bytes, ZyanUSize count,
                                  ZydisDecodedInstruction* insn, ZydisDecodedOperand* operands) {
  return call_lazily<&ZydisDecoderDecodeFull>(BT_ZYDIS, "ZydisDecoderDecodeFull", decoder, bytes,
                                              count, insn, operands);
}
ZyanStatus ZydisDecoderDecodeInstruction(const ZydisDecoder* decoder, ZydisDecoderContext* context,
                                         const void* bytes, ZyanUSize count,
                                         ZydisDecodedInstruction* insn) {
  return call_lazily<&ZydisDecoderDecodeInstruction>(BT_ZYDIS, "ZydisDecoderDecodeInstruction",
                                                     decoder, context, bytes, count, insn);
}
ZydisRegisterClass ZydisRegisterGetClass(ZydisRegister reg) {
  return call_lazily<&ZydisRegisterGetClass>(BT_ZYDIS, "ZydisRegisterGetClass", reg);
}
ZyanI8 ZydisRegisterGetId(ZydisRegister reg) {
  return call_lazily<&ZydisRegisterGetId>(BT_ZYDIS, "ZydisRegisterGetId", reg);
}
ZydisRegister ZydisRegisterGetLargestEnclosing(ZydisMachineMode mode, ZydisRegister reg) {
  return call_lazily<&ZydisRegisterGetLargestEnclosing>(
      BT_ZYDIS, "ZydisRegisterGetLargestEnclosing", mode, reg);
}
ZyanStatus ZydisFormatterInit(ZydisFormatter* formatter, ZydisFormatterStyle style) {
  return call_lazily<&ZydisFormatterInit>(BT_ZYDIS, "ZydisFormatterInit", formatter, style);
}
ZyanStatus ZydisFormatterFormatInstruction(const ZydisFormatter* formatter,
                                           const ZydisDecodedInstruction* insn,
                                           const ZydisDecodedOperand* operands, ZyanU8 count,
                                           char* text, ZyanUSize bytes, ZyanU64 address,
                                           void* user) {
  return call_lazily<&ZydisFormatterFormatInstruction>(BT_ZYDIS, "ZydisFormatterFormatInstruction",
                                                       formatter, insn, operands, count, text,
                                                       bytes, address, user);
}

}  // extern "C"
