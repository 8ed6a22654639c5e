#pragma once
/// @file
/// What the engine reports about traced processes: one typed value an event.

#include <cstdint>
#include <string>

#include "arch/base/address.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::tracee {

enum class StopKind : std::uint8_t {
  kSignal,              ///< `signal` is about to be delivered.
  kStep,                ///< A step, or a range step that left its range, is done.
  kSoftwareBreakpoint,  ///< pc is already back at the breakpoint's address.
  kHardwareBreakpoint,
  kWatchpoint,  ///< `address` is the data address that was written or accessed.
  kFork,        ///< `child` is the new process, stopped before its first instruction.
  kVfork,
  kVforkDone,
  kExec,          ///< `exec_path` is the new program. Other threads are gone.
  kSyscallEntry,  ///< `syscall` is the number.
  kSyscallReturn,
  kThreadCreated,     ///< Only when thread events are asked for.
  kThreadExited,      ///< Likewise; `exit_code`.
  kStopped,           ///< Stopped because it was asked to; nothing happened to the thread.
  kExiting,           ///< Only when asked for: about to be gone, everything still readable;
                      ///< `signal`, or if that is 0 `exit_code`.
  kTraceRequest,      ///< Only when asked for: the thread is about to make a call by which `child`,
                      ///< which we trace, would be traced by another.
  kProcessExited,     ///< `exit_code`; the process is gone.
  kProcessSignalled,  ///< `signal` ended the process; it is gone.
  kNoResumed,         ///< Nothing that was resumed is left.
  kHistoryBegin,      ///< Going back, the thread came to the first instruction that was recorded.
  kHistoryEnd,        ///< Going forward in its past, the thread came to where it really stands.
};

struct StopEvent {
  ThreadId thread{};
  StopKind kind = StopKind::kSignal;
  int signal = 0;  ///< Linux number.
  int exit_code = 0;
  TraceeAddr address{};
  ThreadId child{};
  std::int64_t syscall = -1;
  std::string exec_path{};
};

}  // namespace backtrail::tracee
