// SPDX-License-Identifier: Apache-2.0
// Threads, processes and programs that begin: clone, fork, vfork and exec.

#include <array>
#include <bit>
#include <utility>

#include <linux/kcmp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {
namespace {

/// @param otherwise The answer if the kernel cannot tell.
bool shares_memory(pid_t one, pid_t other, bool otherwise) {
  const auto order = ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
  return order < 0 ? otherwise : order == 0;
}

/// Returns true if the call that the thread is in and that made a process may have given it the
/// thread's memory.
bool may_share_memory(Thread& parent) {
  const auto regs = parent.user_regs();
  if (!regs || parent.process().isa() != arch::Isa::kAmd64) return true;
  std::uint64_t flags = syscall_argument(*regs, 0);
  switch ((*regs)[arch::cpu::kSyscallInProgress]) {
    case SYS_fork:
      return false;
    case SYS_clone:
      return (flags & CLONE_VM) != 0;
    case SYS_clone3: {
      std::array<std::uint8_t, sizeof flags> bytes{};
      if (parent.process().read_memory(TraceeAddr{flags}, bytes) != bytes.size()) return true;
      flags = std::bit_cast<std::uint64_t>(bytes);
      return (flags & CLONE_VM) != 0;
    }
    default:
      return true;
  }
}

/// Unblocks signals that were held only from the thread that created this one.
void unblock(const Thread& thread, std::uint64_t signals) {
  if (signals == 0) return;
  const auto mask = request::read_signal_mask(thread.tid());
  if (mask) (void)request::write_signal_mask(thread.tid(), *mask & ~signals);
}

}  // namespace

void Engine::handle_first_stop(Thread& thread) {
  ThreadControl& control = thread.control();
  control.starting = false;
  unblock(thread, std::exchange(control.held_at_birth, 0));
  record_from_birth(thread);
  if (reported.threads) {
    post(thread, {.kind = StopKind::kThreadCreated});
    return;
  }
  go(thread);
}

void Engine::report_threads(bool on) {
  if (std::exchange(reported.threads, on) == on || on) return;
  std::erase_if(ended_, [](const auto& end) { return end.event.kind == StopKind::kThreadExited; });
  for (const auto& [tid, thread] : by_tid_) {
    const auto& pending = thread->control().pending;
    if (!pending || pending->kind != StopKind::kThreadCreated) continue;
    drop_pending(*thread);
    if (thread->control().resumed) go(*thread);
  }
}

void Engine::handle_clone(Thread& parent) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto tid = static_cast<pid_t>(*message);
  const auto status = ProcFs{}.status(tid);
  if (!status) {  // killed before it ran
    unclaimed_.erase(tid);
    go(parent);
    return;
  }
  // Without CLONE_THREAD it is a process of its own.
  if (status->tgid != parent.group() && !shares_memory(parent.tid(), tid, false)) {
    handle_fork(parent, false);
    return;
  }
  Thread& thread = add_thread(parent.process(), tid);
  thread.set_group(status->tgid);
  ThreadControl& control = thread.control();
  control.starting = true;
  control.resumed = true;
  if (parent.trace()) control.held_at_birth = parent.trace()->source().held_signals();
  control.stop_wanted = parent.control().stop_wanted;
  if (const auto early = unclaimed_.find(tid); early != unclaimed_.end()) {
    const WaitStatus first = early->second;
    unclaimed_.erase(early);
    handle_stop(thread, first);
  }
  go(parent);
}

Result<Process*> Engine::adopt_child(Thread& parent, pid_t child_pid) {
  // The child stops before it executes an instruction.
  if (unclaimed_.erase(child_pid) == 0) BT_CHECKED(next_stop(child_pid));
  BT_TRY(
      std::unique_ptr<Process> opened,
      Process::open(child_pid, child_pid, parent.process().attached(), cache::process_observer()));
  Process& child = *(processes_[child_pid] = std::move(opened));
  child.hidden = true;
  child.inherit_from(parent.process());
  Thread& thread = add_thread(child, child_pid);
  thread.note_stop(WaitStatus::decode(PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f));
  thread.control().last_stop = {.thread = thread.id(), .kind = StopKind::kStopped};
  if (parent.trace()) unblock(thread, parent.trace()->source().held_signals());
  return &child;
}

/// Call for a child that could not be adopted: it must not stay stopped.
void Engine::let_child_go(pid_t child_pid, const Error& why) {
  if (why.is(TraceErrc::kTraceeGone)) {
    log::ptrace().debug("pid={}: {}", child_pid, why.message());
    return;
  }
  log::ptrace().warn("pid={}: the forked child runs on by itself, unrecorded: {}", child_pid,
                     why.message());
  (void)request::detach(child_pid);
}

void Engine::release_child(Process& child) {
  child.code_writers->note_unseen_calls();
  for (const auto& thread : child.threads()) end_trace(*thread);
  if (auto lifted = child.breakpoints().lift_all(); !lifted) {
    log::ptrace().warn("pid={}: breakpoints stay in a forked child: {}", child.pid(),
                       lifted.error().message());
  }
  (void)child.address_limit.lower(child.pid());
  (void)request::detach(child.pid());
  forget_process(child.pid());
}

void Engine::handle_fork(Thread& parent, bool vfork) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto child_pid = static_cast<pid_t>(*message);
  const auto child = adopt_child(parent, child_pid);
  if (!child) {
    parent.process().code_writers->note_unseen_calls();
    let_child_go(child_pid, child.error());
    go(parent);
    return;
  }
  if (vfork) {
    parent.control().vfork_parent = true;
    // The thread parts and translations lie in memory that both processes share. If the kernel
    // cannot tell, assume sharing, as every libc uses vfork.
    if (shares_memory(parent.id().pid, child_pid, true)) {
      cache::share_space(parent.process(), **child);
    }
  } else {
    const auto& writers = parent.process().code_writers;
    if (shares_memory(parent.id().pid, child_pid, may_share_memory(parent))) {
      writers->note_foreign_writes();
    }
    if (const auto& space = parent.process().cache_space) space->kept().keep_for_child();
  }
  if (vfork ? reported.vfork : reported.fork) {
    record_from_start(**child);
    post(parent,
         {.kind = vfork ? StopKind::kVfork : StopKind::kFork, .child = {child_pid, child_pid}});
    return;
  }
  if (vfork) {
    // The memory is shared, so breakpoints lifted here are lifted there.
    (void)parent.process().breakpoints().lift_all();
    parent.process().lifted_for_vfork = true;
  }
  release_child(**child);
  go(parent);
}

void Engine::handle_vfork_done(Thread& thread) {
  thread.control().vfork_parent = false;
  Process& process = thread.process();
  if (process.lifted_for_vfork) {
    process.lifted_for_vfork = false;
    (void)process.breakpoints().reinsert_all();
  }
  if (reported.vfork) {
    post(thread, {.kind = StopKind::kVforkDone});
    return;
  }
  go(thread);
}

void Engine::handle_exec(Thread& thread) {
  const pid_t pid = thread.id().pid;
  Thread* survivor = &thread;
  // If a thread other than the leader execs, it takes over the leader's id (ptrace(2), "execve(2)
  // under ptrace").
  if (const auto former = request::event_message(pid)) {
    const auto found = by_tid_.find(static_cast<pid_t>(*former));
    if (found != by_tid_.end() && found->second->id().pid == pid && found->second != &thread) {
      survivor = found->second;
      survivor->note_stop(thread.status());
      if (survivor->trace() && thread.trace() && thread.trace()->asked_for()) {
        survivor->trace()->set_asked_for(true);  // the client knows the leader's id
      }
      if (survivor->trace()) {
        survivor->rename(pid);
        survivor->trace()->spare_history();
        (void)survivor->trace()->source().on_stop(*survivor, thread.status());
      }
    }
  }
  Process& process = survivor->process();
  for (const auto& each : process.threads()) {
    if (each.get() == survivor) continue;
    release_unannounced_child(*each);
    if (each->group() != pid) let_clone_go_soon(*each);
  }
  std::erase_if(by_tid_, [=](const auto& entry) { return entry.second->id().pid == pid; });
  std::erase_if(conditions_, [=](const auto& entry) { return entry.first.first == pid; });
  process.become_new_image(*survivor);
  by_tid_[pid] = survivor;
  survivor->control().vfork_parent = false;
  survivor->control().stepping_over = false;
  survivor->control().step_over_at.reset();
  survivor->control().queued = false;  // queued under its former id
  if (reported.exec) {
    post(*survivor, {.kind = StopKind::kExec, .exec_path = ProcFs{}.exe(pid).value_or("")});
    return;
  }
  go(*survivor);
}

}  // namespace backtrail::tracee
