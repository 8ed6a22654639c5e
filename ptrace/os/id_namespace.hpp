// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// PID namespaces: pid_namespaces(7).

#include <optional>

#include <sys/types.h>

namespace backtrail::tracee {

/// Returns the inode that stands for the PID namespace of a process or thread; nullopt if it is
/// gone.
[[nodiscard]] std::optional<ino_t> id_namespace(pid_t id);
/// Returns true if the process or thread is in the server's PID namespace.
[[nodiscard]] bool shares_our_ids(pid_t id);

}  // namespace backtrail::tracee
