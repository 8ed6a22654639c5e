#pragma once
/// @file
/// Whether the CPU's debug registers do what they should.

namespace backtrail::tracee {

/// Some hypervisors take every write to the debug registers and never trap (PVM does, seen with
/// Linux 6.18): who trusts them there waits for ever. A child of ours tries it once: it is let run
/// over a breakpoint of its own. True where that could not be tried.
[[nodiscard]] bool debug_registers_trap();

}  // namespace backtrail::tracee
