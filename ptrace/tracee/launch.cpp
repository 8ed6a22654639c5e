// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/launch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "arch/base/log.hpp"
#include "ptrace/os/file_facts.hpp"
#include "ptrace/os/inherited_state.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/launch_child.hpp"

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;

// Children of the shell and of the wrapper are not traced, so forks are not followed before the
// program itself runs.
constexpr unsigned long kStartupOptions =
    PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

struct Limits {
  Clock::time_point deadline;
  const std::function<bool()>& cancelled;
};

// Kills and reaps the process unless it was reaped or handed over.
class ChildGuard {
 public:
  explicit ChildGuard(pid_t pid) : pid_{pid} {}
  ~ChildGuard() {
    if (pid_ > 0) kill_and_reap();
  }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;

  void release() { pid_ = 0; }

 private:
  void kill_and_reap() const {
    ::kill(pid_, SIGKILL);
    const auto give_up = Clock::now() + std::chrono::seconds{10};
    while (Clock::now() < give_up) {
      int raw = 0;
      const pid_t got = ::waitpid(pid_, &raw, __WALL | WNOHANG);
      if (got < 0 && errno != EINTR) return;
      if (got == pid_ && WaitStatus::decode(raw).ended()) return;
      const timespec pause{0, 100'000};
      ::nanosleep(&pause, nullptr);
    }
    log::ptrace().warn("pid={} does not end although it was killed", pid_);
  }

  pid_t pid_;
};

// Waits for the child's next state change. Polls, because waitpid has no timeout and SIGCHLD may
// belong to another child: often at first, because most programs start within milliseconds, then at
// growing intervals.
Result<WaitStatus> wait_for(pid_t pid, const Limits& limits) {
  constexpr long kLongestPauseNs = 1'000'000;
  constexpr int kShortPauses = 100;
  long pause_ns = 30'000;
  for (int pauses = 0;; ++pauses) {
    int raw = 0;
    const pid_t got = ::waitpid(pid, &raw, __WALL | WNOHANG);
    if (got == pid) {
      const WaitStatus status = WaitStatus::decode(raw);
      log::ptrace().debug("pid={} op=startup {}", pid, status.describe());
      return status;
    }
    if (got < 0 && errno != EINTR) return fail_errno("waitpid", static_cast<unsigned>(pid));
    if (Clock::now() >= limits.deadline) return fail(errno_error(ETIMEDOUT, "start-up"));
    if (limits.cancelled && limits.cancelled()) return fail(errno_error(ECANCELED, "start-up"));
    const timespec pause{0, pause_ns};
    ::nanosleep(&pause, nullptr);
    if (pauses >= kShortPauses) pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
  }
}

const char* step_name(ChildStep step) {
  switch (step) {
    case ChildStep::kRedirect:
      return "redirect stdin and stdout";
    case ChildStep::kDirectory:
      return "chdir";
    case ChildStep::kPersonality:
      return "personality";
    case ChildStep::kExec:
      return "execve";
  }
  return "start";
}

// Returns the error that the child reported before it ended; otherwise how it ended.
Error startup_error(int status_fd, const WaitStatus& status) {
  ChildReport report{};
  while (::read(status_fd, &report, sizeof report) == static_cast<ssize_t>(sizeof report))
    if (report.step != ChildStep::kPersonality)
      return errno_error(report.errno_value, step_name(report.step));
  return make_error(TraceErrc::kStartupFailed, "start-up", static_cast<unsigned>(status.raw));
}

/// Warns that address randomization stays on; at info level only for transparent launches, which
/// would otherwise repeat the warning for every command run in a container.
void tell_about_personality(int status_fd, const LaunchSpec& spec) {
  ChildReport report{};
  if (::read(status_fd, &report, sizeof report) == static_cast<ssize_t>(sizeof report))
    log::ptrace().log(spec.transparent ? log::Level::kInfo : log::Level::kWarn,
                      "cannot disable address randomization: {}",
                      errno_error(report.errno_value, step_name(report.step)).message());
}

// Ignores kTraceeGone from a resume, because the next wait reports the end of the process.
Result<void> go_on(Result<void> resumed) {
  if (!resumed && !resumed.error().is(TraceErrc::kTraceeGone)) return resumed;
  return {};
}

// Follows the process through `execs` successful execs, and ends in the stop of the last one.
Result<void> follow_execs(pid_t pid, int execs, int status_fd, ChildGuard& guard,
                          const Limits& limits) {
  while (true) {
    BT_TRY(const WaitStatus status, wait_for(pid, limits));
    if (status.ended()) {
      guard.release();
      return fail(startup_error(status_fd, status));
    }
    if (status.is_event(PTRACE_EVENT_EXEC) && --execs == 0) return {};
    const bool delivery = status.kind == WaitKind::kStopped;
    BT_CHECKED(go_on(request::cont(pid, delivery ? status.signal : 0)));
  }
}

// Returns true if a forced SIGTRAP would change the program's inherited signal state.
bool trap_would_be_noticed(pid_t pid) {
  const auto status = ProcFs{}.status(pid);
  return status && ((status->signals_blocked | status->signals_ignored) & kTrapBit) != 0;
}

// Moves the thread from the exec event, which is inside the system call, to a stop outside of it,
// before the first instruction. A step over the end of a system call executes no instruction of the
// program.
Result<void> leave_exec(pid_t pid, int status_fd, ChildGuard& guard, const Limits& limits) {
  BT_TRY(const TraceeAddr entry, request::peek_pc(pid));
  const bool by_step = !trap_would_be_noticed(pid);
  std::vector<int> held;
  while (true) {
    BT_CHECKED(go_on(by_step ? request::step(pid) : request::cont_syscall(pid)));
    BT_TRY(const WaitStatus status, wait_for(pid, limits));
    if (status.ended()) {
      guard.release();
      return fail(startup_error(status_fd, status));
    }
    if (status.kind == WaitKind::kSyscall) break;
    if (status.kind != WaitKind::kStopped) continue;
    if (status.signal == SIGTRAP) break;
    held.push_back(status.signal);
  }
  for (const int signal : held) ::kill(pid, signal);
  BT_TRY(const TraceeAddr now, request::peek_pc(pid));
  if (now != entry) log::ptrace().warn("pid={} started at {} yet stopped at {}", pid, entry, now);
  return {};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// The file to execute first, its arguments, and the number of execs until the program runs.
struct Command {
  std::string file;
  std::vector<std::string> words;
  int execs = 1;
};

std::string shell_path() {
  const char* shell = std::getenv("SHELL");
  if (shell == nullptr || *shell == '\0') return "/bin/sh";
  if (::access(shell, X_OK) == 0) return shell;
  log::ptrace().warn("SHELL={} cannot be executed; using /bin/sh", shell);
  return "/bin/sh";
}

Result<Command> make_command(const LaunchSpec& spec) {
  Command out;
  LaunchSpec first = spec;  // The command that the server looks up in PATH; a wrapper looks up its
                            // own.
  if (!spec.wrapper.empty()) {
    first.program = spec.wrapper.front();
    ++out.execs;
  }
  if (!spec.through_shell || (spec.wrapper.empty() && spec.check_program)) {
    BT_TRY(out.file, find_program(first));
  }
  // A bare name for a file in the current directory must be an absolute path for the shell.
  std::string program = spec.program;
  std::error_code ignored;
  if (!spec.transparent && program.find('/') == std::string::npos &&
      std::filesystem::is_regular_file(program, ignored))
    program = std::filesystem::absolute(program, ignored).string();
  if (spec.through_shell) {
    out.file = shell_path();
    out.words = {out.file, "-c", shell_command(spec, program)};
    ++out.execs;
    return out;
  }
  out.words = spec.wrapper;
  out.words.push_back(program);
  out.words.insert(out.words.end(), spec.arguments.begin(), spec.arguments.end());
  return out;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    out.emplace_back(*entry);
  return out;
}

bool is_this_program(const char* file) {
  struct stat named {};
  struct stat ours {};
  return ::stat(file, &named) == 0 && ::stat("/proc/self/exe", &ours) == 0 &&
         is_same_file(named, ours);
}

// Shells put the command that they start into `_`; replace the server's own path there.
std::vector<std::string> environment_for(const LaunchSpec& spec, const std::string& file) {
  if (spec.environment) return *spec.environment;
  std::vector<std::string> out = own_environment();
  for (std::string& entry : out) {
    if (spec.transparent && entry.starts_with("_=") && is_this_program(entry.c_str() + 2))
      entry = "_=" + file;
  }
  return out;
}

// Two connected descriptors. The go channel is a socket pair, because a write to it raises no
// SIGPIPE.
struct Channel {
  UniqueFd childs;
  UniqueFd ours;
};
Result<Channel> make_status_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  Channel out{UniqueFd{ends[1]}, UniqueFd{ends[0]}};
  ::fcntl(out.ours.get(), F_SETFL, O_NONBLOCK);
  return out;
}
Result<Channel> make_go_channel() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("socketpair");
  return Channel{UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

bool owns_terminal() {
  return ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

// Forks with all signals blocked, so that no handler of the server runs in the child.
Result<pid_t> fork_child(const ChildPlan& plan) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) run_child(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail(errno_error(error, "fork"));
  return pid;
}

Result<void> seize(pid_t pid) {
  auto seized = request::seize(pid, kStartupOptions);
  if (seized || seized.error().is(TraceErrc::kTraceeGone)) return seized;
  // The tracer of this process may follow children, as strace -f does, and so trace the child
  // already.
  const auto status = ProcFs{}.status(pid);
  const pid_t tracer = status ? status->tracer_pid : 0;
  return fail(
      errno_error(seized.error().code.value(), kTraceRefused, static_cast<std::uint64_t>(tracer)));
}

// Seizes the waiting child, releases it and follows it to the program's first instruction.
Result<LaunchedProcess> start_up(pid_t pid, int execs, int go_fd, int status_fd, ChildGuard& guard,
                                 const LaunchOptions& options) {
  BT_CHECKED(seize(pid));
  // If the child is dead already, the first wait reports it.
  ::send(go_fd, "g", 1, MSG_NOSIGNAL);
  const Limits limits{Clock::now() + options.timeout, options.cancelled};
  BT_CHECKED(follow_execs(pid, execs, status_fd, guard, limits));
  BT_CHECKED(leave_exec(pid, status_fd, guard, limits));
  BT_CHECKED(request::set_options(pid, options.ptrace_options));
  BT_TRY(const std::uint64_t cs, request::peek_user_reg(pid, arch::cpu::UserReg::kCs));
  LaunchedProcess out;
  out.pid = pid;
  out.isa = isa_from_code_segment(cs).value_or(arch::Isa::kAmd64);
  return out;
}

}  // namespace

Result<LaunchedProcess> launch_process(const LaunchSpec& spec, const LaunchOptions& options) {
  BT_TRY(Command command, make_command(spec));
  std::vector<std::string> environment = environment_for(spec, command.file);
  const std::vector<char*> arguments = pointers_to(command.words);
  const std::vector<char*> variables = pointers_to(environment);
  BT_TRY(Channel go, make_go_channel());
  BT_TRY(Channel status, make_status_pipe());
  UniqueFd null;
  if (spec.stdio_is_protocol) null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  keep_own_descriptors_private();

  ChildPlan plan;
  plan.file = command.file.c_str();
  plan.arguments = arguments.data();
  plan.environment = variables.data();
  plan.directory = spec.working_directory.empty() ? nullptr : spec.working_directory.c_str();
  plan.disable_randomization = spec.disable_randomization;
  plan.own_group = !spec.transparent;
  plan.take_terminal = plan.own_group && !spec.stdio_is_protocol && owns_terminal();
  plan.null_fd = null.get();
  plan.go_fd = go.childs.get();
  plan.parents_go_fd = go.ours.get();
  plan.status_fd = status.childs.get();

  BT_TRY(const pid_t pid, fork_child(plan));
  ChildGuard guard{pid};
  go.childs.reset();
  status.childs.reset();
  auto started = start_up(pid, command.execs, go.ours.get(), status.ours.get(), guard, options);
  if (plan.take_terminal) {
    if (started)
      started->previous_foreground = ::getpgrp();
    else
      set_terminal_foreground(::getpgrp());
  }
  if (started) {
    guard.release();
    tell_about_personality(status.ours.get(), spec);
  }
  return started;
}

Error become_program(const LaunchSpec& spec) {
  auto command = make_command(spec);
  if (!command) return command.error();
  std::vector<std::string> environment = environment_for(spec, command->file);
  const std::vector<char*> arguments = pointers_to(command->words);
  const std::vector<char*> variables = pointers_to(environment);
  keep_own_descriptors_private();
  restore_inherited_signals();
  ::execve(command->file.c_str(), arguments.data(), variables.data());
  return errno_error(errno, "execve");
}

void set_terminal_foreground(pid_t process_group) noexcept {
  sigset_t block;
  sigset_t before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  ::tcsetpgrp(STDIN_FILENO, process_group);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace backtrail::tracee
