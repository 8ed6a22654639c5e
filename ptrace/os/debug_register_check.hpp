#pragma once
/// @file
/// Whether the CPU's debug registers do what they should.

namespace backtrail::tracee {

/// Some hypervisors take every write to the debug registers and never trap (PVM does, seen with
/// Linux 6.18): who trusts them there waits for ever. A child of ours tries it once: it is let run
/// over a breakpoint of its own. True where that could not be tried.
[[nodiscard]] bool debug_registers_trap();
/// What is to be said where they do not.
inline constexpr const char* kNoDebugTraps =
    "the debug registers of this machine do not trap, its hypervisor keeps them: use `break` "
    "instead of `hbreak`, and `set can-use-hw-watchpoints 0` before `watch`";

}  // namespace backtrail::tracee
