#pragma once
/// @file
/// Why a process cannot be taken over, in words.

#include <optional>
#include <string>

#include <sys/types.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// What is known to forbid attaching to `pid`, from /proc alone; nullopt = nothing speaks against
/// it. One or two sentences: what, why, what to do.
[[nodiscard]] std::optional<std::string> attach_obstacle(pid_t pid, const ProcFs& proc = ProcFs{});

/// The same after a failed attempt; falls back to the errno's own text.
[[nodiscard]] std::string explain_attach_failure(pid_t pid, const Error& error,
                                                 const ProcFs& proc = ProcFs{});

/// The container this seems to run in ("docker", "podman", "kubernetes", "lxc", ...); nullopt =
/// none noticed.
[[nodiscard]] std::optional<std::string> container_kind(const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
