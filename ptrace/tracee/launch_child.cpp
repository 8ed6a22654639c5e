// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/launch_child.hpp"

#include <cerrno>

#include <sys/personality.h>
#include <unistd.h>

#include "ptrace/os/inherited_state.hpp"

namespace backtrail::tracee {
namespace {

// The exit code of shells that cannot execute a command.
constexpr int kExitCannotExecute = 127;

void report(const ChildPlan& plan, ChildStep step) noexcept {
  const ChildReport message{step, errno};
  // Atomic (less than PIPE_BUF) into an empty pipe; a failure could not be reported anyway.
  [[maybe_unused]] const ssize_t put = ::write(plan.status_fd, &message, sizeof message);
}

[[noreturn]] void give_up(const ChildPlan& plan, ChildStep step) noexcept {
  report(plan, step);
  ::_exit(kExitCannotExecute);
}

bool wait_for_go(int fd) noexcept {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

void fix_addresses(const ChildPlan& plan) noexcept {
  constexpr unsigned long kAsk = 0xffffffff;
  const int now = ::personality(kAsk);
  if (now >= 0 && ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0) return;
  report(plan, ChildStep::kPersonality);
}

}  // namespace

void run_child(const ChildPlan& plan) noexcept {
  if (plan.own_group) ::setpgid(0, 0);
  ::close(plan.parents_go_fd);
  // End of file: the parent died or gave up.
  if (!wait_for_go(plan.go_fd)) ::_exit(kExitCannotExecute);
  // Works from the background too, because SIGTTOU is blocked here.
  if (plan.take_terminal) ::tcsetpgrp(STDIN_FILENO, ::getpid());
  if (plan.null_fd >= 0 &&
      (::dup2(plan.null_fd, STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
    give_up(plan, ChildStep::kRedirect);
  if (plan.directory != nullptr && ::chdir(plan.directory) != 0)
    give_up(plan, ChildStep::kDirectory);
  if (plan.disable_randomization) fix_addresses(plan);
  restore_inherited_signals();
  ::execve(plan.file, plan.arguments, plan.environment);
  give_up(plan, ChildStep::kExec);
}

}  // namespace backtrail::tracee
