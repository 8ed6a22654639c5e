// SPDX-License-Identifier: Apache-2.0
#include "server/record/unrecorded.hpp"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptrace/tracee/launch.hpp"
#include "server/record/forwarded_signals.hpp"
#include "server/record/run_clock.hpp"

namespace backtrail::server {
namespace {

constexpr std::chrono::seconds kGrace{2};
// The exit codes of timeout(1) and shells.
constexpr int kExitTimedOut = 124;
constexpr int kExitCannotExecute = 126;
constexpr int kExitSignalled = 128;

int status_of(int raw) {
  return WIFSIGNALED(raw) ? kExitSignalled + WTERMSIG(raw) : WEXITSTATUS(raw);
}

Result<int> supervise(pid_t pid, ForwardedSignals& signals, std::chrono::milliseconds limit) {
  RunClock clock{signals.fd()};
  clock.set(limit);
  bool timed_out = false;
  for (;;) {
    int raw = 0;
    const pid_t ended = ::waitpid(pid, &raw, WNOHANG);
    if (ended == pid) return timed_out ? kExitTimedOut : status_of(raw);
    if (ended < 0 && errno != EINTR) return fail_errno("waitpid");
    signals.forward(pid, [] {});
    if (clock.is_up()) {
      ::kill(pid, timed_out ? SIGKILL : SIGTERM);
      timed_out = true;
      clock.set(kGrace);
    }
    // The child's end does not wake this poll.
    constexpr int kLookAgainMs = 10;
    pollfd waited{clock.fd(), POLLIN, 0};
    ::poll(&waited, 1, kLookAgainMs);
  }
}

}  // namespace

Result<int> run_unrecorded(const tracee::LaunchSpec& spec,
                           std::optional<std::chrono::milliseconds> limit) {
  if (!limit) return fail(tracee::become_program(spec));
  ForwardedSignals signals;
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    (void)tracee::become_program(spec);
    ::_exit(kExitCannotExecute);
  }
  return supervise(pid, signals, *limit);
}

}  // namespace backtrail::server
