// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/untold_children.hpp"

#include <csignal>
#include <memory>
#include <utility>

#include <sys/ptrace.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/send_kill.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {

Result<Process*> UntoldChildren::adopt(Thread& parent, pid_t child_pid) {
  BT_TRY(std::unique_ptr<Process> opened, Process::open_child(child_pid, parent.process()));
  Process& child = tasks_.add(std::move(opened));
  child.hidden = true;
  child.inherit_from(parent.process());
  Thread& thread = tasks_.add_thread(child, child_pid);
  thread.note_stop(WaitStatus::decode(PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f));
  thread.control().last_stop = {.thread = thread.id(), .kind = StopKind::kStopped};
  if (parent.trace()) unblock_held_signals(thread, parent.trace()->source().held_signals());
  return &child;
}

void UntoldChildren::let_go(pid_t child_pid, const Error& why) {
  if (why.is(TraceErrc::kTraceeGone)) {
    log::ptrace().debug("pid={}: {}", child_pid, why.message());
    return;
  }
  log::ptrace().warn("pid={}: the forked child runs on by itself, unrecorded: {}", child_pid,
                     why.message());
  (void)request::detach(child_pid);
}

void UntoldChildren::release(Process& child) {
  child.code_writers->note_unseen_calls();
  for (const auto& thread : child.threads()) end_trace(*thread);
  if (auto lifted = child.breakpoints().lift_all(); !lifted) {
    log::ptrace().warn("pid={}: breakpoints stay in a forked child: {}", child.pid(),
                       lifted.error().message());
  }
  (void)child.address_limit.lower(child.pid());
  (void)request::detach(child.pid());
  removal_.remove_process(child.pid());
}

Process* UntoldChildren::of(const Thread& parent) const {
  const auto& pending = parent.control().pending;
  if (!pending || (pending->kind != StopKind::kFork && pending->kind != StopKind::kVfork)) {
    return nullptr;
  }
  Process* child = tasks_.find(pending->child.pid);
  return child != nullptr && child->hidden ? child : nullptr;
}

void UntoldChildren::settle(Thread& parent) {
  Process* child = of(parent);
  if (child == nullptr) return;
  if (parent.process().client_kills) (void)send_kill(*child);
  release(*child);
}

}  // namespace backtrail::tracee
