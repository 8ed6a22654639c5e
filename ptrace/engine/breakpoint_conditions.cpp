// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/breakpoint_conditions.hpp"

namespace backtrail::tracee {

void BreakpointConditions::set(pid_t pid, BreakpointKind kind, TraceeAddr address,
                               Condition condition) {
  remove(pid, kind, address);
  if (condition) conditions_[{pid, {kind, address}}] = std::move(condition);
}

void BreakpointConditions::remove(pid_t pid, BreakpointKind kind, TraceeAddr address) {
  conditions_.erase({pid, {kind, address}});
}

void BreakpointConditions::copy(pid_t from, pid_t to, BreakpointKind kind, TraceeAddr address) {
  const auto found = conditions_.find({from, {kind, address}});
  set(to, kind, address, found == conditions_.end() ? Condition{} : found->second);
}

void BreakpointConditions::forget(pid_t pid) {
  std::erase_if(conditions_, [=](const auto& entry) { return entry.first.first == pid; });
}

bool BreakpointConditions::hold(ThreadId id, BreakpointKind kind, TraceeAddr address) const {
  const auto found = conditions_.find({id.pid, {kind, address}});
  return found == conditions_.end() || found->second(id);
}

}  // namespace backtrail::tracee
