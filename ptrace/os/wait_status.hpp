#pragma once
/// @file
/// What waitpid said, decoded once.

#include <cstdint>
#include <string>

namespace backtrail::tracee {

enum class WaitKind : std::uint8_t {
  kExited,     ///< `exit_code`.
  kSignalled,  ///< `signal` ended it; `core_dumped`.
  kStopped,    ///< `signal` is about to be delivered.
  kEvent,      ///< `event` is a PTRACE_EVENT_*; `signal` is of use with PTRACE_EVENT_STOP.
  kSyscall,    ///< Entry to or return from a system call (needs PTRACE_O_TRACESYSGOOD).
  kContinued,  ///< WCONTINUED only.
};

/// A wait status as one typed value.
/// Source: ptrace(2), "Stopped states"; <sys/wait.h>.
struct WaitStatus {
  WaitKind kind = WaitKind::kExited;
  int exit_code = 0;
  int signal = 0;
  int event = 0;
  bool core_dumped = false;
  int raw = 0;  ///< As waitpid returned it.

  [[nodiscard]] static WaitStatus decode(int raw_status) noexcept;

  /// The thread or process has ended.
  [[nodiscard]] bool ended() const noexcept {
    return kind == WaitKind::kExited || kind == WaitKind::kSignalled;
  }
  /// A ptrace stop of any sort.
  [[nodiscard]] bool stopped() const noexcept {
    return kind == WaitKind::kStopped || kind == WaitKind::kEvent || kind == WaitKind::kSyscall;
  }
  [[nodiscard]] bool is_event(int which) const noexcept {
    return kind == WaitKind::kEvent && event == which;
  }
  /// PTRACE_EVENT_STOP of a job-control stop: PTRACE_LISTEN keeps it stopped.
  [[nodiscard]] bool is_group_stop() const noexcept;
  /// PTRACE_EVENT_STOP that PTRACE_INTERRUPT or the start of an auto-attached thread made.
  [[nodiscard]] bool is_interrupt_stop() const noexcept;

  /// "exited 3", "stopped SIGSEGV", "event exec", ... for logs.
  [[nodiscard]] std::string describe() const;
};

/// "SIGSEGV"; "SIG34" for real-time signals (as gdb counts them); or "signal 99".
[[nodiscard]] std::string signal_name(int signal);

}  // namespace backtrail::tracee
