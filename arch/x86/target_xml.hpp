// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes the target description document. Source: GDB manual, "Target Description Format".

#include <span>
#include <string>

#include "arch/isa.hpp"
#include "arch/x86/gdb_register.hpp"

namespace backtrail::arch::x86 {

/// Returns the document for `registers`, in their order. Each feature's types precede its
/// registers.
[[nodiscard]] std::string make_target_xml(Isa isa, std::span<const GdbRegister> registers);

}  // namespace backtrail::arch::x86
