// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/execs.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "arch/base/log.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/engine/vfork_breakpoints.hpp"
#include "ptrace/os/child_signal.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

/// Returns a thread of a process made by clone() that can be stopped and is not.
Thread* running_clone(Process& process) {
  for (const auto& thread : process.threads()) {
    const ThreadControl& control = thread->control();
    if (thread->group() == process.pid() || control.zombie) continue;
    if (control.vfork_parent && !thread->stopped()) continue;
    if (!thread->stopped() || control.starting) return thread.get();
  }
  return nullptr;
}

}  // namespace

Thread* Execs::adopt_leader(pid_t pid) {
  const auto former = request::event_message(pid);
  if (!former) return nullptr;
  Thread* thread = tasks_.find_thread(static_cast<pid_t>(*former));
  if (thread == nullptr || thread->id().pid != pid) return nullptr;
  return &tasks_.add_thread(thread->process(), pid);
}

void Execs::begin(Thread& thread) {
  let_clones_go(thread.process());
  const auto renewed = thread.process().renew_memory();
  if (!renewed) log::ptrace().warn("tid={}: {}", thread.tid(), renewed.error().message());
  if (thread.trace()) thread.trace()->spare_history();
}

void Execs::handle(Thread& thread) {
  const pid_t pid = thread.id().pid;
  Thread& survivor = survivor_of(thread);
  Process& process = survivor.process();
  bool ctrl_c = false;
  for (const auto& each : process.threads()) {
    if (each.get() == &survivor) continue;
    children_.settle(*each);
    ctrl_c = CtrlC::take(*each) || ctrl_c;
    // A clone that let_clones_go() could not stop.
    if (each->group() != pid) detaching_.detach_later(each->tid());
  }
  return_breakpoints(process, tasks_, conditions_);
  conditions_.forget(pid);
  tasks_.become_new_image(process, survivor);
  survivor.control().vfork_parent = false;
  survivor.control().vfork_told = false;
  survivor.control().stepping_over = false;
  survivor.control().step_over_at.reset();
  survivor.control().queued = false;  // queued under its former id
  if (settings_.reported.exec) {
    runner_.post(survivor,
                 {.kind = StopKind::kExec, .exec_path = ProcFs{}.program_path(pid).value_or("")});
  } else {
    runner_.go(survivor);
  }
  if (ctrl_c) runner_.interrupt();
}

void Execs::handle_clone(Thread& thread) {
  const pid_t group = thread.group();
  Process& process = thread.process();
  std::vector<Thread*> all;
  for (const auto& each : process.threads()) {
    if (each->group() == group) all.push_back(each.get());
  }
  for (Thread* each : all) {
    children_.settle(*each);
    // The code that its source would put it back into is gone.
    if (each->trace()) each->trace()->end();
    events_.note_thread_end(*each, 0);
    if (each != &thread) removal_.remove_thread(*each);
  }
  (void)request::detach(group);
  if (process.end && process.threads().size() == 1) {
    events_.note_end(process, *process.end);
    removal_.remove_process(process.pid());
    return;
  }
  removal_.remove_thread(thread);
}

/// If a thread other than the leader execs, it takes over the leader's id (ptrace(2), "execve(2)
/// under ptrace"). Returns the thread that has called exec.
Thread& Execs::survivor_of(Thread& thread) {
  const pid_t pid = thread.id().pid;
  const auto former = request::event_message(pid);
  if (!former) return thread;
  Thread* survivor = tasks_.find_thread(static_cast<pid_t>(*former));
  if (survivor == nullptr || survivor->id().pid != pid || survivor == &thread) return thread;
  survivor->note_stop(thread.status());
  if (!survivor->trace()) return *survivor;
  if (thread.trace() && thread.trace()->asked_for()) {
    survivor->trace()->set_asked_for(true);  // the client knows the leader's id
  }
  survivor->rename(pid);
  survivor->trace()->spare_history();
  (void)survivor->trace()->source().on_stop(*survivor, thread.status());
  return *survivor;
}

/// Processes that share the old memory keep it, and run on by themselves, without breakpoints.
void Execs::let_clones_go(Process& process) {
  const auto is_clone = [&](const auto& each) { return each->group() != process.pid(); };
  if (std::ranges::none_of(process.threads(), is_clone)) return;
  const auto deadline = std::chrono::steady_clock::now() + Waiter::kStarvedLimit;
  // Only they are waited for: the state of the thread that is in its exec must not change.
  while (Thread* clone = running_clone(process)) {
    const pid_t tid = clone->tid();
    if (!clone->control().stop_wanted) Stopper::ask(*clone);
    if (waiter_.wait_one(tid)) continue;
    if (std::chrono::steady_clock::now() >= deadline) break;
    (void)waiter_.sleep(-1, std::chrono::milliseconds{1});
  }
  ChildSignal::again();
  (void)process.breakpoints().lift_all();
  std::vector<Thread*> stopped;
  for (const auto& each : process.threads()) {
    if (is_clone(each) && each->stopped()) stopped.push_back(each.get());
  }
  for (Thread* clone : stopped) {
    children_.settle(*clone);
    end_trace(*clone);
    detaching_.detach_thread(*clone);
    events_.note_thread_end(*clone, 0);
    removal_.remove_thread(*clone);
  }
}

}  // namespace backtrail::tracee
