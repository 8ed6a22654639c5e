// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/attaching.hpp"

#include <csignal>
#include <optional>
#include <utility>
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

/// Threads of a program that executes others all the time end while they are seized.
constexpr int kMostTries = 20;

bool is_traced(pid_t tid) {
  const auto status = ProcFs{}.status(tid);
  return status && status->traced_here();
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

/// Seizes the first thread, which shows that it is permitted, and opens the process.
Result<pid_t> Attaching::seize_first(pid_t pid, Seizing& seizing) {
  std::optional<Error> why_closed;
  for (int i = 1;; ++i) {
    const auto live = ProcFs{}.live_task(pid);
    auto seized = live ? seize(pid, *live, seizing) : live;
    // A try before may have seized it that could not open the process.
    if (!seized && live && is_traced(*live)) seized = *live;
    if (!seized && i == kMostTries) return fail(why_closed.value_or(seized.error()));
    if (!seized) continue;
    auto opened = Process::open(pid, *seized, true, cache::process_observer());
    // A thread that was not the leader may be by now.
    if (!opened) opened = Process::open(pid, pid, true, cache::process_observer());
    if (opened) {
      note_seized(tasks_.add(std::move(*opened)), *seized);
      return pid;
    }
    why_closed = opened.error();
    if (i < kMostTries && why_closed->is(TraceErrc::kTraceeGone)) continue;
    // The thread has been asked to stop.
    if (!request::detach(*seized)) detaching_.detach_later(*seized);
    return fail(*why_closed);
  }
}

/// Seizes a thread and asks it to stop. Returns the id that it has then: if it is about to execute
/// a program, the kernel lets the server wait, and the thread takes over the leader's id meanwhile.
Result<pid_t> Attaching::seize(pid_t pid, pid_t tid, Seizing& seizing) {
  BT_CHECKED(seizing.watch.seize(tid, kAttachOptions));
  const auto asked = request::interrupt(tid);
  if (asked || !asked.error().is(TraceErrc::kTraceeGone)) return tid;
  (void)request::interrupt(pid);
  return pid;
}

/// Call when the thread has been seized and asked to stop.
void Attaching::note_seized(Process& process, pid_t tid) {
  Thread* known = process.find(tid);
  Thread& thread = known != nullptr ? *known : tasks_.add_thread(process, tid);
  thread.control().stop_wanted = true;
  thread.control().interrupt_pending = true;
}

/// Seizes all threads. Those created meanwhile are listed by the next pass, or are clones of seized
/// threads, which the kernel seizes. Returns true if there was one to seize.
Result<bool> Attaching::seize_tasks(Process& process, Seizing& seizing) {
  const ProcFs proc;
  bool any = false;
  for (bool again = true; again; any = any || again) {
    again = false;
    BT_TRY(const std::vector<pid_t> tasks, proc.tasks(process.pid()));
    for (const pid_t tid : tasks) {
      if (tid == process.pid() || process.find(tid) != nullptr) continue;
      if (process.threads().size() > 1) seizing.watch.begin();
      BT_TRY(const bool more, seize_task(process, tid, seizing));
      again = again || more;
    }
    // The list has a thread that executes a program by its own id, or it is the leader by now.
    BT_TRY(const bool more, seize_leader(process, seizing));
    again = again || more;
  }
  return any;
}

/// Seizes a thread that is not traced yet. Returns true if there may be others now.
Result<bool> Attaching::seize_task(Process& process, pid_t tid, Seizing& seizing) {
  auto seized = seize(process.pid(), tid, seizing);
  if (!seized && seized.error().is(std::errc::operation_not_permitted)) {
    const auto status = ProcFs{}.status(tid);
    if (!status) return true;
    // The thread is ending, or a clone of a seized one. One that another process traces makes the
    // next try fail: it would execute breakpoints that the server could not handle.
    if (status->state == 'Z' || status->state == 'X' || status->traced_here()) return false;
    seized = seize(process.pid(), tid, seizing);
  }
  if (!seized && seized.error().is(TraceErrc::kTraceeGone)) return true;
  BT_CHECKED(seized);
  if (*seized == process.pid()) seizing.new_image = true;
  note_seized(process, *seized);
  return true;
}

/// Seizes the leader unless it is traced. A thread that executes a program takes over its id: if
/// only the former leader had been seized, nothing is. Returns true if there may be other threads
/// now.
Result<bool> Attaching::seize_leader(Process& process, Seizing& seizing) {
  const pid_t pid = process.pid();
  for (int i = 1;; ++i) {
    BT_TRY(const ProcStatus status, ProcFs{}.status(pid));
    if (status.state == 'Z' || status.state == 'X') return false;
    const bool known = process.find(pid) != nullptr;
    const bool traced = status.traced_here();
    if (traced && known) return false;
    // A seized thread that has become the leader, which its event will tell, needs no seizing.
    const auto seized = traced ? Result<pid_t>{pid} : seize(pid, pid, seizing);
    if (!seized && i < kMostTries) continue;
    if (!seized && seized.error().is(TraceErrc::kTraceeGone)) return true;
    BT_CHECKED(seized);
    if (traced) (void)request::interrupt(pid);
    if (known) seizing.new_image = true;
    note_seized(process, pid);
    return true;
  }
}

Result<pid_t> Attaching::attach(pid_t pid) {
  if (tasks_.find(pid) != nullptr) return fail(TraceErrc::kBusy, "attach", as_detail(pid));
  const ProcFs proc;
  BT_TRY(const ProcStatus status, proc.status(pid));
  if (status.tgid != pid) return fail(TraceErrc::kNotFound, "attach", as_detail(pid));
  ctrl_c_.drop_stale();
  stop_cpu_.go_back();
  Seizing seizing;
  BT_CHECKED(seize_first(pid, seizing));
  // A thread that was seized in the middle of clone() may make another one, which is not seized,
  // until it stops.
  const auto give_up = [&](const Error& why) {
    (void)detaching_.detach(pid);
    removal_.remove_process(pid);
    return fail(why);
  };
  bool all_stopped = false;
  for (bool again = true; again;) {
    const auto seized = seize_tasks(*tasks_.find(pid), seizing);
    for (const auto& [tid, news] : seizing.watch.take_news()) waiter_.handle(tid, news);
    if (!seized) return give_up(seized.error());
    again = *seized || !std::exchange(all_stopped, true);
    if (!stopper_.stop_process(pid)) again = true;
    Process* process = tasks_.find(pid);
    if (process == nullptr) return fail(TraceErrc::kTraceeGone, "attach", as_detail(pid));
    if (!seizing.new_image) continue;
    const auto renewed = process->renew_memory();
    if (!renewed && !renewed.error().is(TraceErrc::kTraceeGone)) return give_up(renewed.error());
    seizing.new_image = !renewed;  // a thread executes yet another program
    again = again || seizing.new_image;
  }
  Process& process = *tasks_.find(pid);
  for (const auto& each : process.threads()) {
    each->control().last_stop = {.thread = each->id(), .kind = StopKind::kStopped};
  }
  recording_.record_from_start(process);
  return pid;
}

}  // namespace backtrail::tracee
