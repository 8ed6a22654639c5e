// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Options of ptrace(2) for attached processes.

#include <sys/ptrace.h>

#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {

/// Attached processes live on when the server ends.
inline constexpr unsigned long kAttachOptions =
    kDefaultPtraceOptions & ~static_cast<unsigned long>(PTRACE_O_EXITKILL);

}  // namespace backtrail::tracee
