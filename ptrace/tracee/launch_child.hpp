#pragma once
/// @file
/// What the new process does between fork and exec.

#include <cstdint>

namespace backtrail::tracee {

/// The operation of the error when the program may not be traced; its detail is who traces it
/// already, or 0.
inline constexpr const char* kTraceRefused = "trace the program";

/// The steps whose failure is reported.
enum class ChildStep : std::int32_t { kRedirect, kDirectory, kPersonality, kExec };

/// Sent through the status pipe. kPersonality is a warning, the others are followed by the end.
struct ChildReport {
  ChildStep step;
  std::int32_t errno_value;
};

/// Everything the child needs, made before the fork: from then on it must not allocate.
struct ChildPlan {
  const char* file = nullptr;  ///< For execve.
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;  ///< nullptr = stay.
  bool disable_randomization = false;
  bool own_group = true;       ///< Lead a new process group.
  bool take_terminal = false;  ///< Become the foreground process group of stdin's terminal.
  int null_fd = -1;            ///< >= 0: stdin from here, stdout to stderr.
  int go_fd = -1;              ///< One byte arrives when the parent has attached.
  int parents_go_fd = -1;      ///< The parent's end of it, to be closed.
  int status_fd = -1;          ///< ChildReports; close-on-exec.
};

/// Async-signal-safe calls only. Expects all signals blocked.
[[noreturn]] void run_child(const ChildPlan& plan) noexcept;

}  // namespace backtrail::tracee
