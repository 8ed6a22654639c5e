#pragma once
/// @file
/// Whose the breakpoint instruction is that a thread has executed.

#include <optional>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Process;

/// The breakpoint that a thread hit whose pc is behind an int3. nullopt: the program's own int3.
/// A breakpoint that was removed after the thread had executed it still counts: the instruction
/// that was replaced is there again and has not run.
[[nodiscard]] std::optional<TraceeAddr> breakpoint_hit(Process& process, TraceeAddr pc);

}  // namespace backtrail::tracee
