// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tests whether the CPU's debug registers trap.

namespace backtrail::tracee {

/// Returns false if the debug registers accept writes but never trap, as under some hypervisors
/// (PVM, seen with Linux 6.18); a debugger that relies on them would wait for ever. Tested once,
/// with a child process that runs into a hardware breakpoint. True if the test cannot be made.
[[nodiscard]] bool debug_registers_trap();
/// Message for the user if they do not trap.
inline constexpr const char* kNoDebugTraps =
    "the debug registers of this machine do not trap, its hypervisor keeps them: use `break` "
    "instead of `hbreak`, and `set can-use-hw-watchpoints 0` before `watch`";

}  // namespace backtrail::tracee
