// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/os/debug_register_check.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::seconds kStopLimit{5};
/// Bounded, because the kernel may take longer to write a core of its own.
constexpr std::chrono::seconds kEndLimit{1};
constexpr unsigned long kAttachOptions =
    kDefaultPtraceOptions & ~static_cast<unsigned long>(PTRACE_O_EXITKILL);

std::uint64_t as_detail(pid_t id) {
  return static_cast<std::uint64_t>(id);
}

/// Signals that a detaching debugger does not pass on unless told to, because they were its own.
bool is_debugger_signal(int signal) {
  return signal == SIGTRAP || signal == SIGINT;
}

arch::cpu::DebugAccess debug_access(BreakpointKind kind) {
  switch (kind) {
    case BreakpointKind::kWrite:
      return arch::cpu::DebugAccess::kWrite;
    case BreakpointKind::kAccess:
      return arch::cpu::DebugAccess::kReadWrite;
    default:
      return arch::cpu::DebugAccess::kExecute;
  }
}

}  // namespace

Engine::Engine(SourceKind source) : source_{source} {}

Engine::~Engine() {
  const auto next = [this] {
    return std::ranges::find_if(
        tasks_.processes(), [this](const auto& each) { return !leaving_.contains(each.first); });
  };
  for (auto each = next(); each != tasks_.processes().end(); each = next()) {
    Process& process = *each->second;
    const pid_t pid = process.pid();
    if (auto done = process.attached() ? detach(pid) : kill(pid); !done) {
      log::ptrace().warn("pid={}: {}", pid, done.error().message());
    }
    if (!leaving_.contains(pid)) forget_process(pid);
  }
  // The kernel kills launched processes that are still traced when the server ends.
  if (!leaving_.empty()) (void)wait_until([this] { return leaving_.empty(); }, kStopLimit);
  for (const pid_t pid : std::set{leaving_}) forget_process(pid);
  let_orphans_go();
  // Otherwise the end of a session's leader would send SIGHUP to the program that was let go.
  take_terminal_back();
}

void Engine::take_terminal_back() {
  if (terminal_owner_) set_terminal_foreground(*terminal_owner_);
  terminal_owner_.reset();
}

void Engine::forget_thread(Thread& thread) {
  const bool ctrl_c = take_ctrl_c(thread);
  thread.cpu_pin()->release();
  tasks_.remove_thread(thread);
  if (ctrl_c) interrupt();
}

void Engine::forget_process(pid_t pid) {
  const Process* process = tasks_.find(pid);
  if (process == nullptr) return;
  leaving_.erase(pid);
  bool ctrl_c = interrupt_due_;
  for (const auto& thread : process->threads()) ctrl_c = take_ctrl_c(*thread) || ctrl_c;
  conditions_.forget(pid);
  tasks_.remove_process(pid);
  if (ctrl_c) interrupt();  // by a thread of another process, if there is one
  // A process that was let go may still read from the terminal.
  if (tasks_.processes().empty() && ::kill(pid, 0) != 0 && errno == ESRCH) take_terminal_back();
}

Result<pid_t> Engine::launch(const LaunchSpec& spec) {
  stop_cpu_.go_back();
  drop_stale_ctrl_c();
  BT_TRY(const LaunchedProcess launched, launch_process(spec));
  auto process = Process::open(launched.pid, launched.pid, false, cache::process_observer());
  if (!process) {
    ::kill(launched.pid, SIGKILL);
    ::waitpid(launched.pid, nullptr, __WALL);
    return fail(process.error());
  }
  if (launched.previous_foreground && !terminal_owner_) {
    terminal_owner_ = launched.previous_foreground;
  }
  if (settings_.reported.exits) {
    (void)request::set_options(launched.pid, kDefaultPtraceOptions | PTRACE_O_TRACEEXIT);
  }
  Process& added = tasks_.add(std::move(*process));
  added.reports_tracing = settings_.reported.tracing;
  Thread& thread = tasks_.add_thread(added, launched.pid);
  thread.note_stop(WaitStatus::decode(SIGTRAP << 8 | 0x7f));
  thread.control().last_stop = {.thread = thread.id(), .kind = StopKind::kStopped};
  record_from_start(added);
  return launched.pid;
}

Result<void> Engine::seize_tasks(Process& process) {
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
        if (status->tracer_pid != 0 && tid != process.pid())
          continue;  // a clone of a seized thread
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

Result<pid_t> Engine::attach(pid_t pid) {
  if (tasks_.find(pid) != nullptr) return fail(TraceErrc::kBusy, "attach", as_detail(pid));
  const ProcFs proc;
  BT_TRY(const ProcStatus status, proc.status(pid));
  if (status.tgid != pid) return fail(TraceErrc::kNotFound, "attach", as_detail(pid));
  BT_TRY(const pid_t first, proc.live_task(pid));
  drop_stale_ctrl_c();
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
    (void)detach(pid);
    forget_process(pid);
    return fail(seized.error());
  }
  stop_threads([=](const Thread& t) { return t.id().pid == pid; });
  if (tasks_.find(pid) == nullptr) return fail(TraceErrc::kTraceeGone, "attach", as_detail(pid));
  for (const auto& each : process.threads()) {
    each->control().last_stop = {.thread = each->id(), .kind = StopKind::kStopped};
  }
  record_from_start(process);
  return pid;
}

int Engine::detach_signal(Thread& thread) const {
  const ThreadControl& control = thread.control();
  if (control.resume_signal != 0) return control.resume_signal;
  const StopEvent& stop = control.pending ? *control.pending : control.last_stop;
  if (stop.kind != StopKind::kSignal || !thread.at_signal_delivery()) return 0;
  // The thread is not where the fault was. gdb has functions that it calls return to the stack,
  // which raises SIGSEGV; then it restores the registers.
  if (is_raised_by_insns(stop.signal) && thread.moved()) return 0;
  if (settings_.program_signals)
    return settings_.program_signals->contains(stop.signal) ? stop.signal : 0;
  return is_debugger_signal(stop.signal) ? 0 : stop.signal;
}

void Engine::detach_one(Thread& thread) {
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

Result<void> Engine::detach_all(pid_t pid, pid_t last, const std::function<void()>& before_last) {
  Process* process = tasks_.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "detach", as_detail(pid));
  stop_threads([=](const Thread& t) { return t.id().pid == pid; });
  process = tasks_.find(pid);
  if (process == nullptr) return {};  // it ended meanwhile
  for (const auto& thread : process->threads()) settle_unannounced_child(*thread);
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
    if (thread->tid() != last) detach_one(*thread);
  }
  if (Thread* thread = process->find(last)) {
    if (before_last) before_last();
    detach_one(*thread);
  }
  if (gone.size() == process->threads().size()) {
    forget_process(pid);
    return {};
  }
  for (const pid_t tid : gone) forget_thread(*process->find(tid));
  process->hidden = true;
  leaving_.insert(pid);
  return {};
}

void Engine::end_trace(Thread& thread) {
  if (!thread.trace()) return;
  thread.cpu_pin()->release();  // nobody sees its calls from now on
  thread.trace()->end();
  if (thread.stopped()) thread.trace()->source().detach(thread);
  thread.trace().reset();
}

/// Detaches from a thread of a process in leaving_, at its first stop.
void Engine::let_leave(Thread& thread) {
  end_trace(thread);
  const WaitStatus& status = thread.status();
  thread.control().last_stop = {};
  if (status.kind == WaitKind::kStopped) {
    thread.control().last_stop = {.kind = StopKind::kSignal, .signal = status.signal};
  }
  detach_one(thread);
  Process& process = thread.process();
  forget_thread(thread);
  if (process.threads().empty()) forget_process(process.pid());
}

Result<void> Engine::detach(pid_t pid) {
  if (tasks_.find(pid) == nullptr && events_.forget(pid)) return {};
  BT_CHECKED(detach_all(pid, pid));
  // The process, or a thread, may have ended meanwhile.
  (void)events_.forget(pid);
  return {};
}

Result<void> Engine::let_go(ThreadId last, const std::function<void()>& before_last) {
  let_go_.insert(last.pid);
  return detach_all(last.pid, last.tid, before_last);
}

Result<void> Engine::kill(pid_t pid) {
  if (tasks_.find(pid) == nullptr) {
    if (events_.forget(pid)) return {};
    return fail(TraceErrc::kNotFound, "kill", as_detail(pid));
  }
  tasks_.find(pid)->client_kills = true;
  kill_unannounced_children(*tasks_.find(pid));
  // The process may have ended while its children did.
  if (Process* process = tasks_.find(pid)) {
    if (auto sent = send_kill(*process); !sent) {
      process->client_kills = false;
      return sent;
    }
    for (const auto& thread : process->threads()) {
      if (!thread->status().is_event(PTRACE_EVENT_EXIT) || !thread->stopped()) continue;
      events_.drop(*thread);
      set_going(*thread);
    }
  }
  const bool ended = wait_until([&] { return tasks_.find(pid) == nullptr; }, kStopLimit);
  (void)events_.forget(pid);
  if (!ended) {
    log::ptrace().warn("pid={}: does not end after SIGKILL", pid);
    forget_process(pid);
  }
  drop_stale_ctrl_c();
  return {};
}

void Engine::report_exits_of_others(ThreadId id, bool on) {
  const Process* process = tasks_.find(id.pid);
  if (process == nullptr) return;
  const unsigned long options = (process->attached() ? kAttachOptions : kDefaultPtraceOptions) |
                                (on ? static_cast<unsigned long>(PTRACE_O_TRACEEXIT) : 0UL);
  for (const auto& thread : process->threads()) {
    if (thread->id() == id || !thread->stopped()) continue;
    (void)request::set_options(thread->tid(), options);
  }
}

void Engine::end_after(ThreadId id, int signal, const std::function<void()>& action) {
  stop_threads([=](const Thread& t) { return t.id().pid == id.pid; });
  action();
  if (tasks_.find(id) == nullptr) return let_go_on(id.pid);
  const pid_t group = tasks_.find(id)->group();
  // Without this, each of them would resume first and stop once more at its end, for nothing.
  report_exits_of_others(id, false);
  const std::pair<ThreadId, ResumeAction> order{id, {.signal = signal}};
  (void)resume(std::span{&order, 1});
  const auto ends = [&] {
    const Thread* thread = tasks_.find(id);
    return thread == nullptr || (thread->stopped() && thread->status().is_event(PTRACE_EVENT_EXIT));
  };
  const auto is_told = [&] {
    while (!ends() && wait_one(id.tid)) {
    }
    return ends() || tasks_.find(id)->control().pending;
  };
  (void)wait_until(is_told, kEndLimit);
  // The kernel does not end processes that share the memory.
  if (ends()) return let_go_on(id.pid, group);
  // The first process of a pid namespace ignores signals that would end others.
  report_exits_of_others(id, settings_.reported.exits);
  let_go_on(id.pid);
}

Result<void> Engine::insert(pid_t pid, BreakpointSpec spec) {
  Process* process = tasks_.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "insert breakpoint", as_detail(pid));
  if (spec.kind == BreakpointKind::kSoftware) {
    BT_CHECKED(process->breakpoints().insert(spec.address));
  } else {
    if (!debug_registers_trap()) {
      log::ptrace().warn(kNoDebugTraps);
      return fail(errno_error(ENODEV, "insert debug register"));
    }
    BT_CHECKED(process->insert_debug(spec.address, spec.length, debug_access(spec.kind)));
  }
  for (const auto& thread : process->threads()) {
    if (thread->trace()) thread->trace()->source().on_breakpoint(spec.address);
  }
  conditions_.set(pid, spec.kind, spec.address, std::move(spec.condition));
  return {};
}

Result<void> Engine::remove(pid_t pid, const BreakpointSpec& spec) {
  Process* process = tasks_.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "remove breakpoint", as_detail(pid));
  conditions_.remove(pid, spec.kind, spec.address);
  if (spec.kind == BreakpointKind::kSoftware) {
    BT_CHECKED(process->breakpoints().remove(spec.address));
  } else {
    BT_CHECKED(process->remove_debug(spec.address, spec.length, debug_access(spec.kind)));
  }
  return {};
}

}  // namespace backtrail::tracee
