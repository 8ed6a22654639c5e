// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that lock all memory (mlockall), which must not lock the recorder's.

#include <optional>

#include "arch/cpu/registers.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Call if the thread's next instruction locks all memory: locks every mapping of the program's
/// for it. Returns the registers of the call that the thread must make instead, which locks later
/// mappings only; nullopt if it must make its own.
/// @param keeps_translations the process has a persistent cache, so that its mappings were moved
[[nodiscard]] std::optional<arch::cpu::UserRegs> lock_program_memory(
    Thread& thread, const arch::cpu::UserRegs& regs, bool keeps_translations);

}  // namespace backtrail::tracee::cache
