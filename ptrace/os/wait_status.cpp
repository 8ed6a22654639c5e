// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/wait_status.hpp"

#include <csignal>
#include <cstring>
#include <string_view>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <fmt/format.h>

namespace backtrail::tracee {
namespace {

// Set in the signal of a system call stop by PTRACE_O_TRACESYSGOOD.
constexpr int kSyscallStopBit = 0x80;

bool is_job_control(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

std::string_view event_name(int event) {
  switch (event) {
    case PTRACE_EVENT_FORK:
      return "fork";
    case PTRACE_EVENT_VFORK:
      return "vfork";
    case PTRACE_EVENT_CLONE:
      return "clone";
    case PTRACE_EVENT_EXEC:
      return "exec";
    case PTRACE_EVENT_VFORK_DONE:
      return "vfork-done";
    case PTRACE_EVENT_EXIT:
      return "exit";
    case PTRACE_EVENT_SECCOMP:
      return "seccomp";
    case PTRACE_EVENT_STOP:
      return "stop";
    default:
      return "unknown";
  }
}

}  // namespace

WaitStatus WaitStatus::decode(int raw_status) noexcept {
  WaitStatus out;
  out.raw = raw_status;
  if (WIFEXITED(raw_status)) {
    out.exit_code = WEXITSTATUS(raw_status);
  } else if (WIFSIGNALED(raw_status)) {
    out.kind = WaitKind::kSignalled;
    out.signal = WTERMSIG(raw_status);
    out.core_dumped = WCOREDUMP(raw_status);
  } else if (WIFCONTINUED(raw_status)) {
    out.kind = WaitKind::kContinued;
  } else {
    out.kind = WaitKind::kStopped;
    out.signal = WSTOPSIG(raw_status);
    out.event = (raw_status >> 16) & 0xffff;
    if (out.event != 0) {
      out.kind = WaitKind::kEvent;
    } else if (out.signal == (SIGTRAP | kSyscallStopBit)) {
      out.kind = WaitKind::kSyscall;
      out.signal = SIGTRAP;
    }
  }
  return out;
}

bool WaitStatus::is_group_stop() const noexcept {
  return is_event(PTRACE_EVENT_STOP) && is_job_control(signal);
}

bool WaitStatus::is_interrupt_stop() const noexcept {
  return is_event(PTRACE_EVENT_STOP) && !is_job_control(signal);
}

std::string WaitStatus::describe() const {
  switch (kind) {
    case WaitKind::kExited:
      return fmt::format("exited {}", exit_code);
    case WaitKind::kSignalled:
      return fmt::format("killed by {}{}", signal_name(signal), core_dumped ? " (core)" : "");
    case WaitKind::kStopped:
      return fmt::format("stopped {}", signal_name(signal));
    case WaitKind::kEvent:
      return fmt::format("event {} {}", event_name(event), signal_name(signal));
    case WaitKind::kSyscall:
      return "system call stop";
    case WaitKind::kContinued:
      return "continued";
  }
  return "unknown";
}

int event_code(int event) {
  return SIGTRAP | event << 8;
}

std::string signal_name(int signal) {
  // Names follow the kernel's numbers; the C library reserves some of the first real-time signals.
  constexpr int kFirstRealtime = 32;
  constexpr int kLastRealtime = 64;
  if (signal >= kFirstRealtime && signal <= kLastRealtime) return fmt::format("SIG{}", signal);
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace backtrail::tracee
