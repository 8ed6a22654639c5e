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
  /// Bound on the whole start-up, the shell's and the wrapper's part included.
  std::chrono::milliseconds timeout{60'000};
  /// Asked now and then; true ends the start-up with ECANCELED.
  std::function<bool()> cancelled;
};

/// A process whose only thread is seized and stopped before its first instruction, in a stop of its
/// own (not in a system call). It leads its own process group.
struct LaunchedProcess {
  pid_t pid = 0;
  arch::Isa isa = arch::Isa::kAmd64;
  /// The process group that owned the terminal before, when the terminal was handed to the program.
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

/// How the process ended, when `error` is a kStartupFailed of launch_process.
[[nodiscard]] std::optional<WaitStatus> startup_end(const Error& error);
/// One sentence for people: "During startup program exited with code 127.", "PROG: not found", ...
[[nodiscard]] std::string launch_failure_text(const Error& error, const LaunchSpec& spec);

/// Whether the program could not be started because it may not be traced here, or is already.
[[nodiscard]] bool is_trace_refusal(const Error& error);
/// Why, in words, when is_trace_refusal().
[[nodiscard]] std::string trace_refusal_text(const Error& error);

/// Executes the program of `spec` in place of this process, untraced, with what this process has
/// inherited. Returns only if that fails. Errors as launch_process, before and of execve.
[[nodiscard]] Error become_program(const LaunchSpec& spec);

/// Gives the terminal on stdin (back) to a process group. Best effort; works from the background.
void set_terminal_foreground(pid_t process_group) noexcept;

/// The file that would be executed for spec.program: a name without a slash is a regular file in
/// the current directory, or else looked up in the program's PATH. Checks that it can be executed
/// here. An absolute path; with spec.transparent a name with a slash stays as typed, and one
/// without is looked up in PATH only and named as execvp(3) does. Errors as launch_process.
Result<std::string> find_program(const LaunchSpec& spec);

/// The command handed to the shell: "exec WRAPPER... 'PROGRAM' ARGUMENTS...".
[[nodiscard]] std::string shell_command(const LaunchSpec& spec, const std::string& program);
/// `word` so that a shell sees it as it is.
[[nodiscard]] std::string shell_quote(const std::string& word);

}  // namespace backtrail::tracee
