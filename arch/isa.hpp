// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Instruction set of a traced program.

#include <cstdint>

namespace backtrail::arch {

enum class Isa : std::uint8_t {
  kAmd64,  ///< 64-bit code (also the x32 ABI, which runs in 64-bit mode).
  kI386,   ///< 32-bit code, native or as a compat process.
};

}  // namespace backtrail::arch
