// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/engine.hpp"

#include <algorithm>
#include <cerrno>

#include "arch/base/log.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/debug_register_check.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::seconds kStopLimit{5};

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

/// Gives running threads new debug registers. Threads get them when they go on, so those that run
/// are stopped for a moment.
void renew_debug_registers(const Process& process, Stopper& stopper) {
  if (process.any_not_stopped()) stopper.while_stopped(process.pid(), [] {});
}

}  // namespace

Engine::Engine(SourceKind source) : recording_{source, state_.tasks, stopper_, wake_ups_} {
  waiter_.set_handler(handler_);
}

Engine::~Engine() {
  const auto next = [this] {
    return std::ranges::find_if(state_.tasks.processes(), [this](const auto& each) {
      return !removal_.is_leaving(each.first);
    });
  };
  for (auto each = next(); each != state_.tasks.processes().end(); each = next()) {
    Process& process = *each->second;
    const pid_t pid = process.pid();
    if (auto done = process.attached() ? detach(pid) : kill(pid); !done) {
      log::ptrace().warn("pid={}: {}", pid, done.error().message());
    }
    if (!removal_.is_leaving(pid)) removal_.remove_process(pid);
  }
  // The kernel kills launched processes that are still traced when the server ends.
  const std::set<pid_t>& leaving = removal_.leaving();
  if (!leaving.empty()) (void)waiter_.wait_until([&] { return leaving.empty(); }, kStopLimit);
  for (const pid_t pid : std::set{leaving}) removal_.remove_process(pid);
  orphans_.let_all_go();
  // Otherwise the end of a session's leader would send SIGHUP to the program that was let go.
  removal_.take_terminal_back();
}

bool Engine::rests() {
  const auto runs = [](const auto& each) { return each.second->any_not_stopped(); };
  return child_signal_.saw_all_news() && std::ranges::none_of(state_.tasks.processes(), runs) &&
         !state_.events.any() && state_.step_overs.empty() && removal_.leaving().empty() &&
         !waiter_.awaits_faults();
}

Result<void> Engine::resume(std::span<const std::pair<ThreadId, ResumeAction>> orders) {
  runner_.resume(orders);
  return {};
}

std::optional<StopEvent> Engine::take_event() {
  if (!state_.events.any()) return state_.events.take_no_resumed();
  const bool non_stop = state_.settings.non_stop;
  if (!non_stop) stopper_.stop_all();
  std::optional<StopEvent> event = state_.events.take();
  // The thread with the event was ended by another thread's exec, so there is no event.
  if (!non_stop && !event) runner_.let_all_go_on();
  if (!non_stop && event) {
    state_.events.forget_resumed_ended();
    state_.events.hold_thread_ends();
    for (const auto& [tid, thread] : state_.tasks.threads()) {
      ThreadControl& control = thread->control();
      control.resumed = false;
      // Another event came before the Ctrl-C.
      if (CtrlC::take(*thread)) state_.ctrl_c.expect();
    }
  }
  return event;
}

void Engine::set_stop_known(ThreadId id, bool known) {
  if (Thread* thread = find(id)) thread->control().stop_known = known;
}

bool Engine::is_running(ThreadId id) const {
  const Thread* thread = find(id);
  return thread != nullptr && thread->control().resumed && !thread->control().pending;
}

void Engine::report_threads(bool on) {
  if (std::exchange(state_.settings.reported.threads, on) == on || on) return;
  state_.events.forget_thread_ends();
  for (const auto& [tid, thread] : state_.tasks.threads()) {
    const auto& pending = thread->control().pending;
    if (!pending || pending->kind != StopKind::kThreadCreated) continue;
    state_.events.drop(*thread);
    if (thread->control().resumed) runner_.go(*thread);
  }
}

void Engine::set_options(ThreadId id, ThreadOptions options) {
  Thread* thread = find(id);
  if (thread == nullptr) return;
  thread->control().options = options;
  // The client cannot name a thread that it does not know.
  const auto& pending = thread->control().pending;
  if (!pending || pending->kind != StopKind::kThreadCloned) return;
  if (Thread* made = find(pending->child)) made->control().options = options;
}

void Engine::update_thread_list() {
  (void)leaders_.look_now();
  state_.events.forget_held_ends();
}

Result<void> Engine::insert(pid_t pid, BreakpointSpec spec) {
  Process* process = state_.tasks.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "insert breakpoint", as_detail(pid));
  if (spec.kind == BreakpointKind::kSoftware) {
    BT_CHECKED(process->breakpoints().insert(spec.address));
  } else {
    if (!debug_registers_trap()) {
      log::ptrace().warn(kNoDebugTraps);
      return fail(errno_error(ENODEV, "insert debug register"));
    }
    BT_CHECKED(process->insert_debug(spec.address, spec.length, debug_access(spec.kind)));
    renew_debug_registers(*process, stopper_);
    process = state_.tasks.find(pid);
    if (process == nullptr) return fail(TraceErrc::kNotFound, "insert breakpoint", as_detail(pid));
  }
  for (const auto& thread : process->threads()) {
    if (thread->trace()) thread->trace()->source().on_breakpoint(spec.address);
  }
  state_.conditions.set(pid, spec.kind, spec.address, std::move(spec.condition));
  return {};
}

Result<void> Engine::remove(pid_t pid, const BreakpointSpec& spec) {
  Process* process = state_.tasks.find(pid);
  if (process == nullptr) return fail(TraceErrc::kNotFound, "remove breakpoint", as_detail(pid));
  state_.conditions.remove(pid, spec.kind, spec.address);
  if (spec.kind == BreakpointKind::kSoftware) {
    BT_CHECKED(process->breakpoints().remove(spec.address));
  } else {
    BT_CHECKED(process->remove_debug(spec.address, spec.length, debug_access(spec.kind)));
    renew_debug_registers(*process, stopper_);
  }
  return {};
}

}  // namespace backtrail::tracee
