// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Breakpoints and watchpoints as a debugger requests them.

#include <cstdint>
#include <functional>

#include "arch/base/address.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::tracee {

enum class BreakpointKind : std::uint8_t {
  kSoftware,  ///< int3 in the code.
  kHardware,  ///< Execution, by a debug register.
  kWrite,     ///< Data writes.
  kAccess,    ///< Data reads and writes.
};

struct BreakpointSpec {
  BreakpointKind kind = BreakpointKind::kSoftware;
  TraceeAddr address{};
  std::uint64_t length = 1;  ///< Length of the watched data.
  /// Called when a thread hits the software or hardware breakpoint; if it returns false, the thread
  /// goes on unreported. Empty: the hit is always reported.
  std::function<bool(ThreadId)> condition{};
};

}  // namespace backtrail::tracee
