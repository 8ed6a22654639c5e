// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/stopper.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "arch/base/log.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kStopLimit{5'000};
/// How often to look whether a thread is still traced, which takes longer than to wait for it.
constexpr std::chrono::milliseconds kLookEvery{20};

char state_of(pid_t tid) {
  const auto stat = ProcFs{}.task_stat(tid, tid);
  return stat ? stat->state : '?';
}

/// Returns true if the thread is there, but not traced.
bool was_lost(pid_t tid) {
  const auto status = ProcFs{}.status(tid);
  if (!status || status->tracer_pid != 0) return false;
  const auto asked = request::interrupt(tid);
  return !asked && asked.error().is(TraceErrc::kTraceeGone);
}

}  // namespace

void Stopper::ask(Thread& thread) {
  if (thread.stopped() && !thread.control().starting) return;
  thread.control().stop_wanted = true;
  (void)thread.interrupt();
}

bool Stopper::stop(const std::function<bool(const Thread&)>& which) {
  stop_cpu_.go_back();
  std::vector<pid_t> lost;
  const auto still_runs = [&](const Thread& thread) {
    const ThreadControl& control = thread.control();
    return which(thread) && (!thread.stopped() || control.starting) && !control.zombie &&
           !control.vfork_parent && std::ranges::find(lost, thread.tid()) == lost.end();
  };
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (which(*thread)) ask(*thread);
  }
  // Waits for each thread by its id, and only for those still running. Looking at all threads after
  // each stop, here or in the kernel's search for any with news, would mean a million looks for a
  // thousand threads.
  std::vector<pid_t> awaited;
  // For threads created meanwhile, and those that stopped and were resumed because of another
  // event.
  const auto ask_who_was_not = [&](Thread& thread) {
    if (!thread.control().stop_wanted && !thread.control().starting) ask(thread);
  };
  const auto look_at_all = [&] {
    for (const auto& [tid, thread] : tasks_.threads()) {
      if (!still_runs(*thread)) continue;
      awaited.push_back(tid);
      ask_who_was_not(*thread);
    }
  };
  const auto running = [&](pid_t tid) -> Thread* {
    Thread* thread = tasks_.find_thread(tid);
    return thread == nullptr || !still_runs(*thread) ? nullptr : thread;
  };
  auto looked = std::chrono::steady_clock::now();
  // The kernel knows a child of the server's whether it is traced or not.
  const auto is_lost = [&](pid_t tid, Waiter::Waited waited) {
    if (waited == Waiter::Waited::kNotTraced) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < kLookEvery) return false;
    looked = now;
    return was_lost(tid);
  };
  const auto all_stay = [&] {
    std::erase_if(awaited, [&](pid_t tid) {
      while (Thread* thread = running(tid)) {
        const Waiter::Waited waited = waiter_.wait_for(tid);
        if (waited == Waiter::Waited::kHandled) continue;
        if (is_lost(tid, waited)) {
          lost.push_back(tid);
          continue;
        }
        ask_who_was_not(*thread);
        return false;
      }
      return true;
    });
    if (awaited.empty()) look_at_all();
    return awaited.empty();
  };
  const auto starves = [&](pid_t tid) { return running(tid) != nullptr && state_of(tid) == 'R'; };
  bool stay = waiter_.wait_until(all_stay, kStopLimit);
  for (auto waited = kStopLimit; !stay && waited < Waiter::kStarvedLimit; waited += kStopLimit) {
    if (std::none_of(awaited.begin(), awaited.end(), starves)) break;
    stay = waiter_.wait_until(all_stay, kStopLimit);
  }
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (stay || !still_runs(*thread)) continue;
    log::ptrace().error("tid={} does not stop (state {}); going on without it", tid, state_of(tid));
  }
  return lost.empty();
}

bool Stopper::stop_process(pid_t pid) {
  return stop([=](const Thread& thread) { return thread.id().pid == pid; });
}

void Stopper::stop_runners(pid_t pid) {
  const bool any = std::ranges::any_of(tasks_.threads(), [=](const auto& entry) {
    const Thread& thread = *entry.second;
    return thread.id().pid == pid && (!thread.stopped() || thread.control().starting);
  });
  if (any) stop_process(pid);
}

void Stopper::stop_all() {
  // A client's step has stopped the only thread that ran, which goes on sharing its CPU then.
  const bool any = std::ranges::any_of(tasks_.threads(), [](const auto& entry) {
    return !entry.second->stopped() || entry.second->control().starting;
  });
  if (any) stop([](const Thread&) { return true; });
}

void Stopper::while_stopped(pid_t pid, const std::function<void()>& action) {
  stop_process(pid);
  action();
  runner_.let_go_on(pid);
}

void Stopper::each_stopped(const std::vector<ThreadId>& ids,
                           const std::function<void(Thread&)>& action) {
  std::vector<ThreadId> ran;
  for (const ThreadId& id : ids) {
    const Thread* thread = tasks_.find(id);
    if (thread != nullptr && !thread->stopped()) ran.push_back(id);
  }
  const auto is_one = [&](const Thread& thread) {
    return std::find(ran.begin(), ran.end(), thread.id()) != ran.end();
  };
  std::set<pid_t> known;
  for (const auto& [tid, thread] : tasks_.threads()) known.insert(tid);
  if (!ran.empty()) stop(is_one);
  for (const ThreadId& id : ids) {
    if (Thread* thread = tasks_.find(id)) action(*thread);
  }
  // Threads created by one of them meanwhile are stopped already or will be.
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (known.contains(tid)) continue;
    ran.push_back(thread->id());
    if (!thread->stopped()) thread->control().stop_wanted = false;
  }
  for (const ThreadId& id : ran) {
    Thread* thread = tasks_.find(id);
    if (thread == nullptr) continue;
    if (!thread->stopped()) thread->control().stop_wanted = false;
    if (!thread->stopped()) continue;
    if (thread->control().resumed && !thread->control().pending) runner_.go(*thread);
  }
}

}  // namespace backtrail::tracee
