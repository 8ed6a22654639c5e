// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Disassembles instructions for people.

#include <cstdint>
#include <span>
#include <string>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::arch {

/// Returns the instruction at `pc` in AT&T syntax, gdb's default. `bytes` begin at `pc`. Unknown
/// bytes become ".byte ..."; without bytes the text is empty.
[[nodiscard]] std::string disassemble(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch
