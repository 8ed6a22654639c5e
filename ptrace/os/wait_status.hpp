// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A decoded wait status.

#include <cstdint>
#include <string>

namespace backtrail::tracee {

enum class WaitKind : std::uint8_t {
  kExited,     ///< Ended with `exit_code`.
  kSignalled,  ///< Killed by `signal`; see `core_dumped`.
  kStopped,    ///< `signal` is about to be delivered.
  kEvent,      ///< `event` is a PTRACE_EVENT_*; `signal` is meaningful for PTRACE_EVENT_STOP.
  kSyscall,    ///< Entry to or return from a system call (needs PTRACE_O_TRACESYSGOOD).
  kContinued,  ///< WCONTINUED only.
};

/// A wait status in typed form.
/// Source: ptrace(2), "Stopped states"; <sys/wait.h>.
struct WaitStatus {
  WaitKind kind = WaitKind::kExited;
  int exit_code = 0;
  int signal = 0;
  int event = 0;
  bool core_dumped = false;
  int raw = 0;  ///< As waitpid returned it.

  [[nodiscard]] static WaitStatus decode(int raw_status) noexcept;

  /// Returns true if the thread or process has ended.
  [[nodiscard]] bool ended() const noexcept {
    return kind == WaitKind::kExited || kind == WaitKind::kSignalled;
  }
  /// Returns true for a ptrace stop of any kind.
  [[nodiscard]] bool stopped() const noexcept {
    return kind == WaitKind::kStopped || kind == WaitKind::kEvent || kind == WaitKind::kSyscall;
  }
  [[nodiscard]] bool is_event(int which) const noexcept {
    return kind == WaitKind::kEvent && event == which;
  }
  /// PTRACE_EVENT_STOP of a job-control stop: PTRACE_LISTEN keeps it stopped.
  [[nodiscard]] bool is_group_stop() const noexcept;
  /// PTRACE_EVENT_STOP caused by PTRACE_INTERRUPT or by the start of an auto-attached thread.
  [[nodiscard]] bool is_interrupt_stop() const noexcept;

  /// Returns text for logs: "exited 3", "stopped SIGSEGV", "event exec", ...
  [[nodiscard]] std::string describe() const;
};

/// Returns what PTRACE_GETSIGINFO has in si_code, and waitid(2) in si_status, at the stop for a
/// PTRACE_EVENT_* (ptrace(2)).
[[nodiscard]] int event_code(int event);

/// "SIGSEGV"; "SIG34" for real-time signals (as gdb counts them); or "signal 99".
[[nodiscard]] std::string signal_name(int signal);

}  // namespace backtrail::tracee
