#pragma once
/// @file
/// The frame the kernel lays down when it delivers a signal.

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// Where the handler that a thread has just entered will return to.
struct SavedPc {
  TraceeAddr pc;
  TraceeAddr at;           ///< Its address; the flags lie eight bytes further on.
  std::uint8_t flags = 0;  ///< The second byte of the flags.
};

/// Nothing when the frame of the handler that `thread` has just entered says something else than
/// one of the two candidates, or cannot be read.
/// Source: arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h.
[[nodiscard]] std::optional<SavedPc> saved_pc(Thread& thread, Process& process, TraceeAddr first,
                                              TraceeAddr second);

/// Behind POPF Linux takes the trap flag that it sets for a step for the program's, and saves it
/// (arch/x86/kernel/step.c, enable_single_step). This is what the handler is to return with.
void set_saved_trap_flag(Process& process, const SavedPc& saved, bool set);

}  // namespace backtrail::tracee
