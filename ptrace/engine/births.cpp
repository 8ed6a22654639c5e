// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/births.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include <linux/kcmp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/engine/thread_traces.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/remote/remote_calls.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if the call that the thread is in, which made a process, gave it the thread's
/// memory, going by the call's arguments.
/// @param otherwise The answer for calls of unknown form.
bool asked_to_share_memory(Thread& parent, bool otherwise) {
  const auto regs = parent.user_regs();
  if (!regs || parent.process().isa() != arch::Isa::kAmd64) return otherwise;
  std::uint64_t flags = syscall_argument(*regs, 0);
  switch ((*regs)[arch::cpu::kSyscallInProgress]) {
    case SYS_fork:
      return false;
    case SYS_vfork:
      return true;
    case SYS_clone:
      return (flags & CLONE_VM) != 0;
    case SYS_clone3: {
      std::array<std::uint8_t, sizeof flags> bytes{};
      if (parent.process().read_memory(TraceeAddr{flags}, bytes) != bytes.size()) return otherwise;
      flags = std::bit_cast<std::uint64_t>(bytes);
      return (flags & CLONE_VM) != 0;
    }
    default:
      return otherwise;
  }
}

/// Needs no file, of which there may be too many.
bool is_in_group(pid_t group, pid_t tid) {
  return ::syscall(SYS_tgkill, group, tid, 0) == 0;
}

/// Returns true if the child that the thread has just made uses the thread's memory. The kernel
/// names its events after other things: the signal at the child's end (fork or clone), and whether
/// the parent waits (vfork).
bool shares_memory(Thread& parent, pid_t child) {
  const auto order = ::syscall(SYS_kcmp, parent.tid(), child, KCMP_VM, 0, 0);
  if (order >= 0) return order == 0;
  return asked_to_share_memory(parent, !parent.status().is_event(PTRACE_EVENT_FORK));
}

/// Lifts breakpoints for a child that shares the memory and runs untraced.
void lift_for_vfork(Process& process) {
  (void)process.breakpoints().lift_all();
  process.lifted_for_vfork = true;
}

}  // namespace

void Births::handle_first_stop(Thread& thread) {
  ThreadControl& control = thread.control();
  control.starting = false;
  unblock_held_signals(thread, std::exchange(control.held_at_birth, 0));
  recording_.record_from_birth(thread);
  if (control.told_by_maker) {
    // The client may have resumed it meanwhile.
    if (!control.resumed) control.stop_wanted = false;
    if (control.resumed && !control.pending) runner_.go(thread);
    return;
  }
  if (settings_.reported.threads) {
    runner_.post(thread, {.kind = StopKind::kThreadCreated});
    return;
  }
  runner_.go(thread);
}

void Births::handle_new_task(Thread& parent) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto tid = static_cast<pid_t>(*message);
  const bool vfork = parent.status().is_event(PTRACE_EVENT_VFORK);
  const bool is_gone = ::kill(tid, 0) != 0 && errno == ESRCH;
  if (is_gone && !vfork) {  // killed before it ran
    (void)orphans_.claim(tid);
    runner_.go(parent);
    return;
  }
  // Without CLONE_THREAD it is a process of its own.
  const bool is_thread = is_in_group(parent.group(), tid);
  const bool shares = is_thread || shares_memory(parent, tid);
  // A client that follows processes to their ends sets no breakpoints, and wants to see which
  // program this one executes and how it ends.
  const bool is_followed = settings_.reported.exits && parent.status().is_event(PTRACE_EVENT_FORK);
  if (shares && !vfork && !is_followed) {
    add_clone(parent, tid, is_thread ? parent.group() : tid);
    return;
  }
  if (shares && is_followed) parent.process().code_writers->note_foreign_writes();
  handle_fork(parent, tid, shares);
}

void Births::add_clone(Thread& parent, pid_t tid, pid_t group) {
  Thread& thread = tasks_.add_thread(parent.process(), tid);
  thread.set_group(group);
  ThreadControl& control = thread.control();
  const ThreadId id = thread.id();
  const bool is_event = parent.control().options.clones;
  control.options = parent.control().options;
  control.told_by_maker = control.untold = is_event;
  if (is_event) control.last_stop = {.thread = id, .kind = StopKind::kStopped};
  control.starting = true;
  control.resumed = !is_event;
  if (parent.trace()) control.held_at_birth = parent.trace()->source().held_signals();
  control.stop_wanted = parent.control().stop_wanted;
  auto first = orphans_.claim(tid);
  // A client that hears of the thread reads its registers.
  if (!first && is_event) {
    if (const auto stop = next_stop(tid)) first = *stop;
  }
  if (first) waiter_.handle(tid, *first);
  if (is_event && tasks_.find(id) != nullptr) {
    runner_.post(parent, {.kind = StopKind::kThreadCloned, .child = id});
  } else {
    runner_.go(parent);
  }
}

Result<Process*> Births::await_child(Thread& parent, pid_t child_pid) {
  // The child stops before it executes an instruction.
  if (!orphans_.claim(child_pid)) BT_CHECKED(next_stop(child_pid));
  return children_.adopt(parent, child_pid);
}

/// @param shares The child uses the parent's memory until it executes another program or ends.
void Births::handle_fork(Thread& parent, pid_t child_pid, bool shares) {
  const bool vfork = parent.status().is_event(PTRACE_EVENT_VFORK);
  const bool is_lent = shares && vfork;
  parent.control().vfork_parent = vfork;
  const auto child = await_child(parent, child_pid);
  if (!child) {
    parent.process().code_writers->note_unseen_calls();
    if (shares) cache::note_unrecorded_user(parent.process());
    if (is_lent) lift_for_vfork(parent.process());
    UntoldChildren::let_go(child_pid, child.error());
    runner_.go(parent);
    return;
  }
  if (shares) parent.process().code_writers->note_shared_memory(parent.process(), **child);
  // The thread parts and translations lie in memory that both processes share.
  if (is_lent) {
    cache::share_space(parent.process(), **child);
  } else if (const auto& space = parent.process().cache_space) {
    space->kept().keep_for_child();
    (*child)->inherited_code = space->code_of_child();
  }
  // A client takes a vfork's child for one that shares the memory.
  const StopKind kind = is_lent ? StopKind::kVfork : StopKind::kFork;
  if (is_lent ? settings_.reported.vfork : settings_.reported.fork) {
    recording_.record_from_start(**child);
    parent.control().vfork_told = is_lent;
    if (is_lent) (*child)->memory_owner = parent.process().pid();
    runner_.post(parent, {.kind = kind, .child = {child_pid, child_pid}});
    return;
  }
  if (is_lent) lift_for_vfork(parent.process());
  children_.release(**child);
  runner_.go(parent);
}

void Births::handle_vfork_done(Thread& thread) {
  thread.control().vfork_parent = false;
  Process& process = thread.process();
  const bool others_wait = std::ranges::any_of(
      process.threads(), [](const auto& each) { return each->control().vfork_parent; });
  if (process.lifted_for_vfork && !others_wait) {
    process.lifted_for_vfork = false;
    (void)process.breakpoints().reinsert_all();
  }
  if (std::exchange(thread.control().vfork_told, false) && settings_.reported.vfork) {
    runner_.post(thread, {.kind = StopKind::kVforkDone});
    return;
  }
  runner_.go(thread);
}

}  // namespace backtrail::tracee
