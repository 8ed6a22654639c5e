// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Identifiers of processes and threads.

#include <compare>

#include <sys/types.h>

namespace backtrail::tracee {

/// A thread and its process (thread group). Both are kernel ids.
struct ThreadId {
  pid_t pid = 0;
  pid_t tid = 0;
  auto operator<=>(const ThreadId&) const = default;
};

}  // namespace backtrail::tracee
