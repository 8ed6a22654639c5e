// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/vfork_breakpoints.hpp"

#include <utility>

#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {

void return_breakpoints(Process& child, const TaskTable& tasks, BreakpointConditions& conditions) {
  const pid_t owner = std::exchange(child.memory_owner, 0);
  Process* parent = owner == 0 ? nullptr : tasks.find(owner);
  if (parent == nullptr) return;
  for (const TraceeAddr address : parent->breakpoints().take_over(child.breakpoints())) {
    conditions.copy(child.pid(), owner, BreakpointKind::kSoftware, address);
    for (const auto& thread : parent->threads()) {
      if (thread->trace()) thread->trace()->source().on_breakpoint(address);
    }
  }
}

}  // namespace backtrail::tracee
