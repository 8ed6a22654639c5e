// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Events that the engine reports about traced processes.

#include <cstdint>
#include <string>

#include "arch/base/address.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::tracee {

enum class StopKind : std::uint8_t {
  kSignal,              ///< `signal` is about to be delivered.
  kStep,                ///< A step has finished, or a range step has left its range.
  kSoftwareBreakpoint,  ///< pc is already set back to the breakpoint's address.
  kHardwareBreakpoint,
  kWatchpoint,  ///< `address` is the data address that was written or accessed.
  kFork,        ///< `child` is the new process, stopped before its first instruction.
  kVfork,
  kVforkDone,
  kExec,          ///< `exec_path` is the new program. Other threads are gone.
  kSyscallEntry,  ///< `syscall` is the number.
  kSyscallReturn,
  kThreadCreated,  ///< Reported only if thread events are requested.
  kThreadExited,   ///< Reported only if thread events are requested, or for threads with
                   ///< ThreadOptions::exit; `exit_code`.
  kThreadCloned,   ///< Reported only for threads with ThreadOptions::clones. `child` is the new
                   ///< thread, stopped before its first instruction.
  kStopped,        ///< Stopped on request; nothing happened to the thread.
  kExiting,  ///< Reported only if requested: about to end, everything still readable; `signal`, or
             ///< if that is 0 `exit_code`.
  kTraceRequest,      ///< Reported only if requested: the thread is about to make a call by which
                      ///< `child`, a traced process, would be traced by another process.
  kProcessExited,     ///< `exit_code`; the process is gone.
  kProcessSignalled,  ///< `signal` ended the process; it is gone.
  kNoResumed,         ///< No resumed thread is left.
  kHistoryBegin,      ///< Executing backward, the thread reached the first recorded instruction.
  kHistoryEnd,        ///< Executing forward in the past, the thread reached the present.
};

struct StopEvent {
  ThreadId thread{};
  StopKind kind = StopKind::kSignal;
  int signal = 0;  ///< Linux signal number.
  int exit_code = 0;
  TraceeAddr address{};
  ThreadId child{};
  std::int64_t syscall = -1;
  std::string exec_path{};

  /// Returns the event of a process's end. `status` is that of its last wait.
  [[nodiscard]] static StopEvent end_of(ThreadId process, const WaitStatus& status) {
    return {.thread = process,
            .kind = status.kind == WaitKind::kExited ? StopKind::kProcessExited
                                                     : StopKind::kProcessSignalled,
            .signal = status.signal,
            .exit_code = status.exit_code};
  }
};

}  // namespace backtrail::tracee
