// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/attaching.hpp"

#include <csignal>
#include <vector>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/trace_options.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {

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
  for (bool found_new = true; found_new;) {
    found_new = false;
    BT_TRY(const std::vector<pid_t> tasks, proc.tasks(process.pid()));
    for (const pid_t tid : tasks) {
      if (process.find(tid) != nullptr) continue;
      auto seized = request::seize(tid, kAttachOptions);
      if (!seized && seized.error().is(std::errc::operation_not_permitted)) {
        const auto status = proc.status(tid);
        if (!status || status->state == 'Z' || status->state == 'X') continue;  // it is ending
        // A clone of a seized thread.
        if (status->tracer_pid != 0 && tid != process.pid()) continue;
      }
      if (!seized && seized.error().is(TraceErrc::kTraceeGone)) continue;
      BT_CHECKED(seized);
      found_new = true;
      Thread& thread = tasks_.add_thread(process, tid);
      thread.control().stop_wanted = true;
      (void)thread.interrupt();
    }
  }
  return {};
}

Result<pid_t> Attaching::attach(pid_t pid) {
  if (tasks_.find(pid) != nullptr) return fail(TraceErrc::kBusy, "attach", as_detail(pid));
  const ProcFs proc;
  BT_TRY(const ProcStatus status, proc.status(pid));
  if (status.tgid != pid) return fail(TraceErrc::kNotFound, "attach", as_detail(pid));
  BT_TRY(const pid_t first, proc.live_task(pid));
  ctrl_c_.drop_stale();
  // First make sure that attaching is permitted.
  BT_CHECKED(request::seize(first, kAttachOptions));
  auto opened = Process::open(pid, first, true, cache::process_observer());
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
