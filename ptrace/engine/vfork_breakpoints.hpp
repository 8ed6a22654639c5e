// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Breakpoints that a client sets in a vfork's child are in memory that is the parent's, too.

#include "ptrace/engine/breakpoint_conditions.hpp"
#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// Call when a process ends or executes another program, before what is known of it is dropped. If
/// it was a vfork's child until then, its breakpoints are still in the parent's memory and become
/// those of the parent, as clients expect (gdb does not set them again).
void return_breakpoints(Process& child, const TaskTable& tasks, BreakpointConditions& conditions);

}  // namespace backtrail::tracee
