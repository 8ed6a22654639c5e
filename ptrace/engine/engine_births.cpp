// SPDX-License-Identifier: Apache-2.0
// Threads, processes and programs that begin: clone, fork, vfork and exec.

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <set>
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
  if (settings_.reported.threads) {
    post(thread, {.kind = StopKind::kThreadCreated});
    return;
  }
  go(thread);
}

void Engine::report_threads(bool on) {
  if (std::exchange(settings_.reported.threads, on) == on || on) return;
  events_.forget_thread_ends();
  for (const auto& [tid, thread] : tasks_.threads()) {
    const auto& pending = thread->control().pending;
    if (!pending || pending->kind != StopKind::kThreadCreated) continue;
    events_.drop(*thread);
    if (thread->control().resumed) go(*thread);
  }
}

void Engine::handle_new_task(Thread& parent) {
  const auto message = request::event_message(parent.tid());
  if (!message) return;
  const auto tid = static_cast<pid_t>(*message);
  const bool vfork = parent.status().is_event(PTRACE_EVENT_VFORK);
  const bool is_gone = ::kill(tid, 0) != 0 && errno == ESRCH;
  if (is_gone && !vfork) {  // killed before it ran
    (void)unclaimed_.claim(tid);
    go(parent);
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
  handle_fork(parent, tid, shares && vfork);
}

void Engine::add_clone(Thread& parent, pid_t tid, pid_t group) {
  Thread& thread = tasks_.add_thread(parent.process(), tid);
  thread.set_group(group);
  ThreadControl& control = thread.control();
  control.starting = true;
  control.resumed = true;
  if (parent.trace()) control.held_at_birth = parent.trace()->source().held_signals();
  control.stop_wanted = parent.control().stop_wanted;
  if (const auto first = unclaimed_.claim(tid)) handle_stop(thread, *first);
  go(parent);
}

Result<Process*> Engine::await_child(Thread& parent, pid_t child_pid) {
  // The child stops before it executes an instruction.
  if (!unclaimed_.claim(child_pid)) BT_CHECKED(next_stop(child_pid));
  return adopt_child(parent, child_pid);
}

/// Requires that the child is in its first stop.
Result<Process*> Engine::adopt_child(Thread& parent, pid_t child_pid) {
  BT_TRY(
      std::unique_ptr<Process> opened,
      Process::open(child_pid, child_pid, parent.process().attached(), cache::process_observer()));
  Process& child = tasks_.add(std::move(opened));
  child.hidden = true;
  child.inherit_from(parent.process());
  Thread& thread = tasks_.add_thread(child, child_pid);
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

/// Returns the new processes that no thread can report any more, because it was killed first.
/// @param ended A thread that has just ended; null if there is none.
std::vector<UnclaimedTasks::Orphan> Engine::take_orphans(const Thread* ended) {
  if (unclaimed_.empty()) return {};
  std::set<pid_t> groups;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (thread != ended && !thread->stopped() && !thread->control().zombie) {
      groups.insert(thread->group());
    }
  }
  if (ended != nullptr && ended->tid() == ended->group()) groups.erase(ended->group());
  return unclaimed_.take_orphans(groups);
}

/// @param maker A thread of the process that probably made it; null if that is not known any more.
void Engine::let_orphan_go(const UnclaimedTasks::Orphan& orphan, Thread* maker) {
  log::ptrace().debug("pid={}: its parent was killed before it could report it", orphan.pid);
  if (auto memory = ProcessMemory::open(orphan.pid)) left_breakpoints_.lift_from(*memory);
  if (maker == nullptr) {
    (void)request::detach(orphan.pid);
    return;
  }
  if (const auto child = adopt_child(*maker, orphan.pid)) {
    if (const auto& space = maker->process().cache_space) space->kept().keep_for_child();
    release_child(**child);
  } else {
    let_child_go(orphan.pid, child.error());
  }
}

/// Call when the thread has ended. Its child shares its fate if the client asked for that.
void Engine::settle_orphans_of(Thread& ended) {
  const auto orphans = take_orphans(&ended);
  if (orphans.empty()) return;
  for (const auto& orphan : orphans) {
    if (ended.process().client_kills) {
      (void)::kill(orphan.pid, SIGKILL);
    } else {
      let_orphan_go(orphan, &ended);
    }
  }
}

void Engine::let_orphans_go() {
  for (const auto& orphan : take_orphans(nullptr)) {
    const auto maker = std::ranges::find_if(tasks_.threads(), [&](const auto& entry) {
      return entry.second->group() == orphan.parent;
    });
    let_orphan_go(orphan, maker == tasks_.threads().end() ? nullptr : maker->second);
  }
}

/// @param shares The child uses the parent's memory until it executes another program or ends; only
/// for a vfork.
void Engine::handle_fork(Thread& parent, pid_t child_pid, bool shares) {
  const bool vfork = parent.status().is_event(PTRACE_EVENT_VFORK);
  parent.control().vfork_parent = vfork;
  const auto child = await_child(parent, child_pid);
  if (!child) {
    parent.process().code_writers->note_unseen_calls();
    if (shares) lift_for_vfork(parent.process());
    let_child_go(child_pid, child.error());
    go(parent);
    return;
  }
  // The thread parts and translations lie in memory that both processes share.
  if (shares) {
    cache::share_space(parent.process(), **child);
  } else if (const auto& space = parent.process().cache_space) {
    space->kept().keep_for_child();
  }
  // A client takes a vfork's child for one that shares the memory.
  const StopKind kind = shares ? StopKind::kVfork : StopKind::kFork;
  if (shares ? settings_.reported.vfork : settings_.reported.fork) {
    record_from_start(**child);
    parent.control().vfork_told = shares;
    post(parent, {.kind = kind, .child = {child_pid, child_pid}});
    return;
  }
  if (shares) lift_for_vfork(parent.process());
  release_child(**child);
  go(parent);
}

/// Lifts breakpoints for a child that shares the memory and runs untraced.
void Engine::lift_for_vfork(Process& process) {
  (void)process.breakpoints().lift_all();
  process.lifted_for_vfork = true;
}

void Engine::handle_vfork_done(Thread& thread) {
  thread.control().vfork_parent = false;
  Process& process = thread.process();
  const bool others_wait = std::ranges::any_of(
      process.threads(), [](const auto& each) { return each->control().vfork_parent; });
  if (process.lifted_for_vfork && !others_wait) {
    process.lifted_for_vfork = false;
    (void)process.breakpoints().reinsert_all();
  }
  if (std::exchange(thread.control().vfork_told, false) && settings_.reported.vfork) {
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
    Thread* found = tasks_.find_thread(static_cast<pid_t>(*former));
    if (found != nullptr && found->id().pid == pid && found != &thread) {
      survivor = found;
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
  bool ctrl_c = false;
  for (const auto& each : process.threads()) {
    if (each.get() == survivor) continue;
    settle_unannounced_child(*each);
    ctrl_c = take_ctrl_c(*each) || ctrl_c;
    // A clone that let_clones_go() could not stop.
    if (each->group() != pid) loose_.insert(each->tid());
  }
  conditions_.forget(pid);
  tasks_.become_new_image(process, *survivor);
  survivor->control().vfork_parent = false;
  survivor->control().vfork_told = false;
  survivor->control().stepping_over = false;
  survivor->control().step_over_at.reset();
  survivor->control().queued = false;  // queued under its former id
  if (settings_.reported.exec) {
    post(*survivor, {.kind = StopKind::kExec, .exec_path = ProcFs{}.exe(pid).value_or("")});
  } else {
    go(*survivor);
  }
  if (ctrl_c) interrupt();
}

}  // namespace backtrail::tracee
