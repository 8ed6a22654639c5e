// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The frame that the kernel builds on the stack when it delivers a signal.

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// The pc to which the handler just entered will return.
struct SavedPc {
  TraceeAddr pc;
  TraceeAddr at;           ///< Its address; the flags lie eight bytes further on.
  std::uint8_t flags = 0;  ///< The second byte of the flags.
};

/// Returns the saved pc in the frame of the handler that `thread` has just entered; nullopt if the
/// frame cannot be read or holds neither of the two candidates.
/// Source: arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h.
[[nodiscard]] std::optional<SavedPc> saved_pc(Thread& thread, Process& process, TraceeAddr first,
                                              TraceeAddr second);

/// Sets the trap flag that the handler's return restores. After POPF, Linux takes the flag that it
/// sets for a step for the program's, and saves it (arch/x86/kernel/step.c, enable_single_step).
void set_saved_trap_flag(Process& process, const SavedPc& saved, bool set);

}  // namespace backtrail::tracee
