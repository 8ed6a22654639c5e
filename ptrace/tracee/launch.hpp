// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts a program under ptrace and brings it to its first instruction.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/ptrace.h>
#include <sys/types.h>

#include "arch/base/result.hpp"
#include "arch/isa.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/launch_spec.hpp"

namespace backtrail::tracee {

inline constexpr unsigned long kDefaultPtraceOptions =
    PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
    PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACESYSGOOD;

struct LaunchOptions {
  unsigned long ptrace_options = kDefaultPtraceOptions;
  /// Limit for the whole start-up, including the shell and the wrapper.
  std::chrono::milliseconds timeout{60'000};
  /// Called now and then; returning true ends the start-up with ECANCELED.
  std::function<bool()> cancelled;
};

/// A process whose only thread is seized and stopped before its first instruction, outside of any
/// system call. It leads its own process group.
struct LaunchedProcess {
  pid_t pid = 0;
  arch::Isa isa = arch::Isa::kAmd64;
  /// Process group that owned the terminal before it was handed to the program.
  std::optional<pid_t> previous_foreground;
};

/// Forks, seizes, execs and follows the start-up through the shell and the wrapper.
///
/// Errors, all after the process has been killed and reaped:
///  - before anything is started, by the operation's name: ENOENT, EISDIR, EACCES, ENOEXEC (neither
///    ELF nor a script), kUnsupported (ELF of another CPU); see launch_failure_text;
///  - kStartupFailed: the shell, the wrapper or the program ended first; detail is the raw wait
///    status (startup_end decodes it);
///  - an errno of the step in the child that failed (chdir, execve, ...) or of ptrace;
///  - ETIMEDOUT, ECANCELED.
/// Waits for its own child only.
Result<LaunchedProcess> launch_process(const LaunchSpec& spec, const LaunchOptions& options = {});

/// Returns how the process ended if `error` is launch_process()'s kStartupFailed.
[[nodiscard]] std::optional<WaitStatus> startup_end(const Error& error);
/// Returns a sentence for users: "During startup program exited with code 127.", "PROG: not found",
/// ...
[[nodiscard]] std::string launch_failure_text(const Error& error, const LaunchSpec& spec);

/// Returns true if the program could not be started because tracing is not permitted or another
/// process traces it already.
[[nodiscard]] bool is_trace_refusal(const Error& error);
/// Explains an error for which is_trace_refusal() returns true.
[[nodiscard]] std::string trace_refusal_text(const Error& error);

/// Executes the program of `spec` in place of this process, untraced, with the state this process
/// inherited. Returns only on failure. Errors: those of launch_process() before the start and of
/// execve.
[[nodiscard]] Error become_program(const LaunchSpec& spec);

/// Makes a process group the foreground group of the terminal on stdin. Best effort; works from the
/// background.
void set_terminal_foreground(pid_t process_group) noexcept;

/// Returns the absolute path of the file to execute for spec.program. A name without a slash means
/// a regular file in the current directory or, if there is none, is looked up in the program's
/// PATH. With spec.transparent, a name with a slash is returned as typed; one without is looked up
/// in PATH only and named as execvp(3) would. Checks that the file can be executed. Errors as
/// launch_process().
Result<std::string> find_program(const LaunchSpec& spec);

/// Returns the command for the shell: "exec WRAPPER... 'PROGRAM' ARGUMENTS...".
[[nodiscard]] std::string shell_command(const LaunchSpec& spec, const std::string& program);
/// Quotes `word` so that a shell reads it as one literal word.
[[nodiscard]] std::string shell_quote(const std::string& word);

}  // namespace backtrail::tracee
