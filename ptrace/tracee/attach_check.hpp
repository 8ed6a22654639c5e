// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Explains why a process cannot be attached to.

#include <optional>
#include <string>

#include <sys/types.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// Returns what forbids attaching to `pid`, judged from /proc alone; nullopt if nothing does. One
/// or two sentences: what, why, what to do.
[[nodiscard]] std::optional<std::string> attach_obstacle(pid_t pid, const ProcFs& proc = ProcFs{});

/// Explains a failed attempt to attach. Falls back to the errno's text.
[[nodiscard]] std::string explain_attach_failure(pid_t pid, const Error& error,
                                                 const ProcFs& proc = ProcFs{});

/// Returns the kind of container that this process seems to run in ("docker", "podman",
/// "kubernetes", "lxc", ...); nullopt if none is detected.
[[nodiscard]] std::optional<std::string> container_kind(const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
