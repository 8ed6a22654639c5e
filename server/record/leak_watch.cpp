// SPDX-License-Identifier: Apache-2.0
#include "server/record/leak_watch.hpp"

#include <algorithm>
#include <iterator>

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "server/record/sanitizers.hpp"

namespace backtrail::server {
namespace {

namespace request = tracee::request;
using tracee::WaitKind;
using tracee::WaitStatus;

std::optional<WaitStatus> wait_for(pid_t tid) {
  int raw = 0;
  if (::waitpid(tid, &raw, __WALL) != tid) return std::nullopt;
  return WaitStatus::decode(raw);
}

/// Lets the thread pass `wanted` ends of system calls; delivers signals that come first.
bool pass_ends(pid_t tid, int wanted) {
  constexpr int kMostStops = 64;
  int ends = 0;
  int signal = 0;
  for (int i = 0; i < kMostStops && ends < wanted; ++i) {
    if (!request::cont_syscall(tid, signal)) return false;
    const auto status = wait_for(tid);
    if (!status || !status->stopped() || status->is_event(PTRACE_EVENT_EXIT)) return false;
    signal = status->kind == WaitKind::kStopped ? status->signal : 0;
    ends += status->kind == WaitKind::kSyscall ? 1 : 0;
  }
  return ends == wanted;
}

void go_on(pid_t tid, const WaitStatus& status, bool to_system_call) {
  const int signal = status.kind == WaitKind::kStopped ? status.signal : 0;
  if (status.is_group_stop()) {
    (void)request::listen(tid);
  } else if (to_system_call) {
    (void)request::cont_syscall(tid, signal);
  } else {
    (void)request::cont(tid, signal);
  }
}

/// Returns true if the thread is at the entry of a system call that starts a task as leak checks
/// do.
bool starts_a_checker(pid_t tid) {
  constexpr std::uint64_t kClone = 56;
  const auto number = request::peek_user_reg(tid, arch::cpu::kSyscallInProgress);
  const auto flags = request::peek_user_reg(tid, arch::cpu::kSyscallArguments[0]);
  return number && flags && *number == kClone && (*flags & CLONE_UNTRACED) != 0;
}

}  // namespace

void LeakWatch::begin(tracee::Thread& thread) {
  constexpr int kBoth = 2;
  hold_checker({thread.process().pid(), thread.tid()}, kBoth);
}

void LeakWatch::hold_checker(const Watched& watched, int ends) {
  const tracee::ProcFs proc;
  const auto before = proc.children(watched.pid);
  if (!before || !pass_ends(watched.thread, ends)) return;
  const auto after = proc.children(watched.pid);
  if (!after) return;
  std::vector<pid_t> born;
  std::copy_if(after->begin(), after->end(), std::back_inserter(born), [&](pid_t child) {
    return std::find(before->begin(), before->end(), child) == before->end();
  });
  if (born.size() != 1 || !request::seize(born.front(), PTRACE_O_TRACEEXIT)) return;
  checkers_[born.front()] = watched;
}

void LeakWatch::seize_again(const Watched& watched) {
  if (!request::seize(watched.thread, PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)) return;
  threads_[watched.thread] = watched;
  // From that stop on its system calls are seen, because one of them may begin another check.
  (void)request::interrupt(watched.thread);
}

void LeakWatch::tell(const Watched& watched) {
  const auto message = request::event_message(watched.thread);
  if (!message || !WIFEXITED(static_cast<int>(*message))) return;
  const auto pc = request::peek_pc(watched.thread);
  const auto maps = tracee::ProcFs{}.maps(watched.pid);
  if (!pc || !maps) return;
  told_(watched.pid, lies_in_a_runtime(watched.pid, *maps, *pc),
        WEXITSTATUS(static_cast<int>(*message)));
}

bool LeakWatch::on_stop(pid_t tid, const WaitStatus& status) {
  const bool exits = status.is_event(PTRACE_EVENT_EXIT);
  if (const auto checker = checkers_.find(tid); checker != checkers_.end()) {
    if (!exits) {
      go_on(tid, status, false);
      return true;
    }
    seize_again(checker->second);
    checkers_.erase(checker);
    // If it were traced until its end, the server would have to reap it.
    (void)request::detach(tid, 0);
    return true;
  }
  const auto thread = threads_.find(tid);
  if (thread == threads_.end()) return false;
  const Watched watched = thread->second;
  const bool checks = status.kind == WaitKind::kSyscall && starts_a_checker(tid);
  if (exits || checks) threads_.erase(thread);
  if (exits) tell(watched);
  if (checks) {
    hold_checker(watched, 1);
    (void)request::detach(tid, 0);
    return true;
  }
  go_on(tid, status, !exits);
  return true;
}

}  // namespace backtrail::server
