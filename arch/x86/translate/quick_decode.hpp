// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A decoder of the most common instructions, many times faster than a general one.

#include <span>

#include "arch/base/address.hpp"
#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

/// An instruction of which nothing is known, to be copied. Where a compiler sees its value, it
/// clears an object of this size by REP STOS, which takes longer than quick_decode().
extern const SourceInsn unknown_insn;

/// Decodes the instruction at `pc` into `insn`, which must be as constructed, as decode_source()
/// does; but SourceInsn::bytes continues with the bytes that follow the instruction. Returns false,
/// and leaves `insn` in any state, if the instruction is not one of the common ones or if there are
/// fewer than kMaxInsnBytes bytes.
[[nodiscard]] bool quick_decode(TraceeAddr pc, std::span<const std::uint8_t> bytes,
                                SourceInsn& insn);

}  // namespace backtrail::arch::x86::translate
