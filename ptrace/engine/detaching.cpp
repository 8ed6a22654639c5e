// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/detaching.hpp"

#include <csignal>
#include <vector>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"

namespace backtrail::tracee {
namespace {

/// Signals that a detaching debugger does not pass on unless told to, because they were its own.
bool is_debugger_signal(int signal) {
  return signal == SIGTRAP || signal == SIGINT;
}

}  // namespace

Result<void> Detaching::detach(pid_t pid) {
  if (tasks_.find(pid) == nullptr && events_.forget(pid)) return {};
  BT_CHECKED(detach_all(pid, pid, {}));
  // The process, or a thread, may have ended meanwhile.
  (void)events_.forget(pid);
  return {};
}

Result<void> Detaching::let_go(ThreadId last, const std::function<void()>& before_last) {
  let_go_.insert(last.pid);
  return detach_all(last.pid, last.tid, before_last);
}

Result<void> Detaching::detach_all(pid_t pid, pid_t last,
                                   const std::function<void()>& before_last) {
  Process* process = tasks_.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "detach", as_detail(pid));
  stopper_.stop_process(pid);
  process = tasks_.find(pid);
  if (process == nullptr) return {};  // it ended meanwhile
  for (const auto& thread : process->threads()) children_.settle(*thread);
  std::vector<pid_t> gone;
  for (const auto& thread : process->threads()) {
    const bool waits = thread->control().vfork_parent && !thread->stopped();
    if (!waits) {
      end_trace(*thread);
      gone.push_back(thread->tid());
    }
    thread->control().resumed = false;
  }
  (void)process->breakpoints().lift_all();
  (void)process->address_limit.lower(pid);
  process->clear_debug();
  for (const auto& thread : process->threads()) {
    if (thread->tid() != last) detach_thread(*thread);
  }
  if (Thread* thread = process->find(last)) {
    if (before_last) before_last();
    detach_thread(*thread);
  }
  if (gone.size() == process->threads().size()) {
    removal_.remove_process(pid);
    return {};
  }
  for (const pid_t tid : gone) removal_.remove_thread(*process->find(tid));
  process->hidden = true;
  removal_.note_leaving(pid);
  return {};
}

void Detaching::let_leave(Thread& thread) {
  end_trace(thread);
  const WaitStatus& status = thread.status();
  thread.control().last_stop = {};
  if (status.kind == WaitKind::kStopped) {
    thread.control().last_stop = {.kind = StopKind::kSignal, .signal = status.signal};
  }
  detach_thread(thread);
  Process& process = thread.process();
  removal_.remove_thread(thread);
  if (process.threads().empty()) removal_.remove_process(process.pid());
}

void Detaching::detach_thread(Thread& thread) {
  if (!thread.stopped()) return;
  thread.process().code_writers->note_unseen_calls();
  for (unsigned number = 7; thread.process().debug_generation() != 0 && number == 7; --number) {
    (void)request::write_debug_register(thread.tid(), number, 0);
  }
  const int signal = detach_signal(thread);
  const auto done = request::detach(thread.tid(), signal);
  if (done) return;
  // Somebody may kill the process meanwhile.
  const auto level =
      done.error().is(TraceErrc::kTraceeGone) ? log::Level::kDebug : log::Level::kWarn;
  log::ptrace().log(level, "tid={}: {}", thread.tid(), done.error().message());
}

int Detaching::detach_signal(Thread& thread) const {
  const ThreadControl& control = thread.control();
  if (control.resume_signal != 0) return control.resume_signal;
  const StopEvent& stop = control.pending ? *control.pending : control.last_stop;
  if (stop.kind != StopKind::kSignal || !thread.at_signal_delivery()) return 0;
  // The thread is not where the fault was. gdb has functions that it calls return to the stack,
  // which raises SIGSEGV; then it restores the registers.
  if (is_raised_by_insns(stop.signal) && thread.moved()) return 0;
  if (const auto& program_signals = settings_.program_signals) {
    return program_signals->contains(stop.signal) ? stop.signal : 0;
  }
  return is_debugger_signal(stop.signal) ? 0 : stop.signal;
}

bool Detaching::handle_loose(pid_t tid, const WaitStatus& status) {
  if (loose_.erase(tid) == 0) return false;
  const bool signalled = status.kind == WaitKind::kStopped;
  if (status.stopped()) (void)request::detach(tid, signalled ? status.signal : 0);
  return true;
}

void Detaching::handle_untraced_end(pid_t pid, const WaitStatus& status) {
  if (take_let_go(pid)) events_.note_untraced_end(StopEvent::end_of({pid, pid}, status));
}

}  // namespace backtrail::tracee
