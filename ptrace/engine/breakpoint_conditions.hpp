// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Conditions of the client's breakpoints.

#include <functional>
#include <map>
#include <utility>

#include "ptrace/tracee/breakpoint.hpp"

namespace backtrail::tracee {

/// A breakpoint without a condition is always reported.
class BreakpointConditions {
 public:
  using Condition = std::function<bool(ThreadId)>;

  /// Replaces the breakpoint's condition. An empty one removes it.
  void set(pid_t pid, BreakpointKind kind, TraceeAddr address, Condition condition);
  void remove(pid_t pid, BreakpointKind kind, TraceeAddr address);
  /// Gives a breakpoint of one process the condition that another process has there.
  void copy(pid_t from, pid_t to, BreakpointKind kind, TraceeAddr address);
  /// Removes the conditions of all breakpoints of the process.
  void forget(pid_t pid);
  /// Returns true if a hit of the breakpoint by the thread is reported. Calls the condition.
  [[nodiscard]] bool hold(ThreadId id, BreakpointKind kind, TraceeAddr address) const;

 private:
  using Key = std::pair<pid_t, std::pair<BreakpointKind, TraceeAddr>>;
  std::map<Key, Condition> conditions_;
};

}  // namespace backtrail::tracee
