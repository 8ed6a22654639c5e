// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells breakpoints of the debugger from the program's own trap instructions.

#include <optional>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Process;

/// Returns the address of the breakpoint that a thread hit whose pc is after an int3; nullopt if
/// the int3 is the program's own. A breakpoint that was removed after the hit still counts: the
/// original instruction is back and has not run.
[[nodiscard]] std::optional<TraceeAddr> breakpoint_hit(Process& process, TraceeAddr pc);

}  // namespace backtrail::tracee
