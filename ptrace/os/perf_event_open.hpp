// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// perf_event_open(2), which the C library does not wrap.

#include <linux/perf_event.h>
#include <sys/types.h>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Opens an event on a thread (0 = the calling one) on any CPU, close-on-exec. Errors: the errno.
Result<UniqueFd> perf_event_open(const perf_event_attr& attributes, pid_t tid);

}  // namespace backtrail::tracee
