// SPDX-License-Identifier: Apache-2.0
#include "server/target/past_stops.hpp"

namespace backtrail::server {

using tracee::BreakpointKind;

Result<void> PastStops::insert(const tracee::BreakpointSpec& breakpoint) {
  switch (breakpoint.kind) {
    case BreakpointKind::kAccess:
      return fail(TraceErrc::kUnsupported, "watch reads in the past");
    case BreakpointKind::kWrite:
      watches_.insert(breakpoint.address, breakpoint.length);
      return {};
    case BreakpointKind::kSoftware:
      software_.insert(breakpoint.address);
      break;
    case BreakpointKind::kHardware:
      hardware_.insert(breakpoint.address);
      break;
  }
  addresses_.insert(breakpoint.address);
  return {};
}

void PastStops::remove(const tracee::BreakpointSpec& breakpoint) {
  if (breakpoint.kind == BreakpointKind::kWrite) {
    watches_.remove(breakpoint.address, breakpoint.length);
  }
  if (breakpoint.kind == BreakpointKind::kSoftware) software_.erase(breakpoint.address);
  if (breakpoint.kind == BreakpointKind::kHardware) hardware_.erase(breakpoint.address);
  addresses_ = software_;
  addresses_.insert(hardware_.begin(), hardware_.end());
}

tracee::StopKind PastStops::kind_at(TraceeAddr pc) const {
  return software_.contains(pc) ? tracee::StopKind::kSoftwareBreakpoint
                                : tracee::StopKind::kHardwareBreakpoint;
}

}  // namespace backtrail::server
