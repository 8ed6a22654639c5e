// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Zydis as the translator uses it.

#include <Zydis/Zydis.h>

namespace backtrail::arch::x86::translate {

/// Returns the decoder of 64-bit code.
[[nodiscard]] const ZydisDecoder& zydis_decoder();

}  // namespace backtrail::arch::x86::translate
