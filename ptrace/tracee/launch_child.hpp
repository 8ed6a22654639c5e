// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Code that the new process runs between fork and exec.

#include <cstdint>

namespace backtrail::tracee {

/// Operation of the error that tracing is not permitted. Its detail is the tid of the current
/// tracer, or 0.
inline constexpr const char* kTraceRefused = "trace the program";

/// Steps whose failure is reported.
enum class ChildStep : std::int32_t { kRedirect, kDirectory, kPersonality, kExec };

/// A message in the status pipe. After any step but kPersonality, which is a warning, the child
/// exits.
struct ChildReport {
  ChildStep step;
  std::int32_t errno_value;
};

/// All that the child needs, prepared before the fork because the child must not allocate.
struct ChildPlan {
  const char* file = nullptr;  ///< Argument of execve.
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;  ///< Null: keep the current one.
  bool disable_randomization = false;
  bool own_group = true;       ///< Lead a new process group.
  bool take_terminal = false;  ///< Become the foreground process group of stdin's terminal.
  int null_fd = -1;            ///< If >= 0, becomes stdin, and stdout becomes stderr.
  int go_fd = -1;              ///< Delivers one byte when the parent has attached.
  int parents_go_fd = -1;      ///< The parent's end of `go_fd`, which the child closes.
  int status_fd = -1;          ///< Pipe for ChildReport messages; close-on-exec.
};

/// Runs in the child. Makes async-signal-safe calls only; expects all signals blocked.
[[noreturn]] void run_child(const ChildPlan& plan) noexcept;

}  // namespace backtrail::tracee
