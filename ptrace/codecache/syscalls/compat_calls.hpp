// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that 64-bit code makes by INT 0x80, with the numbers and arguments of 32-bit
/// programs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"

namespace backtrail::tracee::cache {

/// Reads the program's memory; returns the number of bytes read.
using ReadMemory = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;

/// Returns true if INT 0x80 with `regs` may make a call that as_plain_call() knows. Needs no
/// memory, so it can be asked before every instruction.
[[nodiscard]] bool may_have_plain_call(const arch::cpu::UserRegs& regs);

/// Returns the registers with which a SYSCALL instruction would make the call that INT 0x80 makes
/// with `regs`; nullopt for calls that do not change mappings, and where the kernel cannot read the
/// arguments.
/// @param read  for calls whose arguments are in memory
[[nodiscard]] std::optional<arch::cpu::UserRegs> as_plain_call(const arch::cpu::UserRegs& regs,
                                                               const ReadMemory& read);

}  // namespace backtrail::tracee::cache
