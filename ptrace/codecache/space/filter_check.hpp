// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether all seccomp filters of a process are known.

#include "arch/base/result.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Asks the kernel how many filters the thread has, once for a tree of processes whose calls are
/// all seen. Errors: kUnsupported if a filter was installed that nobody has seen.
[[nodiscard]] Result<void> check_filters(Thread& thread);

}  // namespace backtrail::tracee::cache
