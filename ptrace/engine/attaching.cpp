// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/attaching.hpp"

#include <csignal>
#include <vector>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/trace_options.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {
namespace {

/// Returns the thread that traces `tid`; 0 if none does or `tid` is gone.
pid_t tracer_of(pid_t tid) {
  const auto status = ProcFs{}.status(tid);
  return status ? status->tracer_pid : 0;
}

/// Seizes a thread, which shows that it is permitted. Threads that are ending refuse.
Result<pid_t> seize_one(pid_t pid) {
  constexpr int kMostTries = 20;
  for (int i = 1;; ++i) {
    BT_TRY(const pid_t tid, ProcFs{}.live_task(pid));
    const auto seized = request::seize(tid, kAttachOptions);
    if (seized) return tid;
    if (i == kMostTries) return fail(seized.error());
  }
}

}  // namespace

Result<pid_t> Attaching::launch(const LaunchSpec& spec) {
  stop_cpu_.go_back();
  ctrl_c_.drop_stale();
  BT_TRY(const LaunchedProcess launched, launch_process(spec));
  auto process = Process::open(launched.pid, launched.pid, false, cache::process_observer());
  if (!process) {
    ::kill(launched.pid, SIGKILL);
    ::waitpid(launched.pid, nullptr, __WALL);
    return fail(process.error());
  }
  if (launched.previous_foreground) removal_.note_terminal_owner(*launched.previous_foreground);
  if (settings_.reported.exits) {
    (void)request::set_options(launched.pid, kDefaultPtraceOptions | PTRACE_O_TRACEEXIT);
  }
  Process& added = tasks_.add(std::move(*process));
  added.reports_tracing = settings_.reported.tracing;
  Thread& thread = tasks_.add_thread(added, launched.pid);
  thread.note_stop(WaitStatus::decode(SIGTRAP << 8 | 0x7f));
  thread.control().last_stop = {.thread = thread.id(), .kind = StopKind::kStopped};
  recording_.record_from_start(added);
  return launched.pid;
}

Result<void> Attaching::seize_tasks(Process& process) {
  const ProcFs proc;
  // Threads may be created meanwhile; the kernel seizes clones of seized threads.
  for (bool again = true; again;) {
    again = false;
    BT_TRY(const std::vector<pid_t> tasks, proc.tasks(process.pid()));
    for (const pid_t tid : tasks) {
      BT_TRY(const bool more, seize_task(process, tid));
      again = again || more;
    }
  }
  return {};
}

/// Seizes a thread that is not traced yet. Returns true if there may be others now.
Result<bool> Attaching::seize_task(Process& process, pid_t tid) {
  const bool known = process.find(tid) != nullptr;
  // A thread that executes a program takes over the leader's id. If only the leader had been
  // seized, nothing is.
  const bool replaced = known && tid == process.pid() && tracer_of(tid) == 0;
  if (known && !replaced) return false;
  auto seized = request::seize(tid, kAttachOptions);
  if (!seized && seized.error().is(std::errc::operation_not_permitted)) {
    const auto status = ProcFs{}.status(tid);
    if (!status) return true;
    if (status->state == 'Z' || status->state == 'X') return false;  // it is ending
    const pid_t tracer = status->tracer_pid;
    // A clone of a seized thread; or a seized thread that has become the leader, which its event
    // tells.
    if (tracer == ::gettid() || (tracer != 0 && tid != process.pid())) return false;
    // The former leader was ending.
    if (tracer == 0) seized = request::seize(tid, kAttachOptions);
  }
  if (!seized && seized.error().is(TraceErrc::kTraceeGone)) return true;
  BT_CHECKED(seized);
  if (replaced) BT_CHECKED(process.renew_memory());
  Thread& thread = replaced ? *process.find(tid) : tasks_.add_thread(process, tid);
  thread.control().stop_wanted = true;
  thread.control().interrupt_pending = false;
  (void)thread.interrupt();
  return true;
}

Result<pid_t> Attaching::attach(pid_t pid) {
  if (tasks_.find(pid) != nullptr) return fail(TraceErrc::kBusy, "attach", as_detail(pid));
  const ProcFs proc;
  BT_TRY(const ProcStatus status, proc.status(pid));
  if (status.tgid != pid) return fail(TraceErrc::kNotFound, "attach", as_detail(pid));
  ctrl_c_.drop_stale();
  BT_TRY(const pid_t first, seize_one(pid));
  auto opened = Process::open(pid, first, true, cache::process_observer());
  // A thread that was not the leader may be by now.
  if (!opened && first != pid) opened = Process::open(pid, pid, true, cache::process_observer());
  if (!opened) {
    (void)request::interrupt(first);
    (void)request::detach(first);
    return fail(opened.error());
  }
  Process& process = tasks_.add(std::move(*opened));
  Thread& thread = tasks_.add_thread(process, first);
  thread.control().stop_wanted = true;
  (void)thread.interrupt();
  if (auto seized = seize_tasks(process); !seized) {
    (void)detaching_.detach(pid);
    removal_.remove_process(pid);
    return fail(seized.error());
  }
  stopper_.stop_process(pid);
  if (tasks_.find(pid) == nullptr) return fail(TraceErrc::kTraceeGone, "attach", as_detail(pid));
  for (const auto& each : process.threads()) {
    each->control().last_stop = {.thread = each->id(), .kind = StopKind::kStopped};
  }
  recording_.record_from_start(process);
  return pid;
}

}  // namespace backtrail::tracee
