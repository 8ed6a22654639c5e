// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Breakpoints and watchpoints that end moves in the past of one process.

#include <set>

#include "arch/base/result.hpp"
#include "ptrace/tracee/breakpoint.hpp"
#include "ptrace/tracee/stop_event.hpp"
#include "server/target/past_watches.hpp"

namespace backtrail::server {

/// Conditions are ignored: they may need values that are not known. The debugger evaluates them
/// again at each stop.
class PastStops {
 public:
  /// Error kUnsupported for access watchpoints: reads leave no trace.
  Result<void> insert(const tracee::BreakpointSpec& breakpoint);
  void remove(const tracee::BreakpointSpec& breakpoint);

  /// Addresses with a breakpoint of either kind.
  [[nodiscard]] const std::set<TraceeAddr>& addresses() const { return addresses_; }
  /// Returns the event of a breakpoint at `pc`.
  [[nodiscard]] tracee::StopKind kind_at(TraceeAddr pc) const;
  [[nodiscard]] const PastWatches& watches() const { return watches_; }

 private:
  std::set<TraceeAddr> addresses_;
  std::set<TraceeAddr> software_;
  std::set<TraceeAddr> hardware_;
  PastWatches watches_;
};

}  // namespace backtrail::server
