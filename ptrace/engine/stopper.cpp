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

bool runs(const Thread& thread) {
  return !thread.stopped() || thread.control().starting;
}

/// Threads that are not traced any more.
class LostThreads {
 public:
  [[nodiscard]] bool any() const { return !tids_.empty(); }
  [[nodiscard]] bool contain(pid_t tid) const {
    return std::ranges::find(tids_, tid) != tids_.end();
  }
  /// Returns true, and notes the thread, if it is lost; `waited` says what the kernel knows of it.
  bool note(pid_t tid, Waiter::Waited waited) {
    const bool lost = waited == Waiter::Waited::kNotTraced || is_untraced_child(tid);
    if (lost) tids_.push_back(tid);
    return lost;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// The server can wait for its own children whether they are traced or not.
  bool is_untraced_child(pid_t tid) {
    if (Clock::now() - looked_ < kLookEvery) return false;
    looked_ = Clock::now();
    const auto status = ProcFs{}.status(tid);
    if (!status || status->tracer_pid != 0) return false;
    const auto asked = request::interrupt(tid);
    return !asked && asked.error().is(TraceErrc::kTraceeGone);
  }

  std::vector<pid_t> tids_;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace

void Stopper::ask(Thread& thread) {
  if (thread.stopped() && !thread.control().starting) return;
  thread.control().stop_wanted = true;
  (void)thread.interrupt();
}

bool Stopper::stop(const std::function<bool(const Thread&)>& which) {
  stop_cpu_.go_back();
  LostThreads lost;
  const auto still_runs = [&](const Thread& thread) {
    const ThreadControl& control = thread.control();
    return which(thread) && runs(thread) && !control.zombie && !control.vfork_parent &&
           !lost.contain(thread.tid());
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
  const auto all_stay = [&] {
    std::erase_if(awaited, [&](pid_t tid) {
      while (Thread* thread = running(tid)) {
        const Waiter::Waited waited = waiter_.wait_for(tid);
        if (waited == Waiter::Waited::kHandled) continue;
        if (lost.note(tid, waited)) return true;
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
  if (stay) return !lost.any();
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (!still_runs(*thread)) continue;
    log::ptrace().error("tid={} does not stop (state {}); going on without it", tid, state_of(tid));
  }
  return !lost.any();
}

bool Stopper::stop_process(pid_t pid) {
  return stop([=](const Thread& thread) { return thread.id().pid == pid; });
}

void Stopper::stop_runners(pid_t pid) {
  const bool any = std::ranges::any_of(tasks_.threads(), [=](const auto& entry) {
    return entry.second->id().pid == pid && runs(*entry.second);
  });
  if (any) stop_process(pid);
}

void Stopper::stop_all() {
  // A client's step has stopped the only thread that ran, which goes on sharing its CPU then.
  const bool any =
      std::ranges::any_of(tasks_.threads(), [](const auto& entry) { return runs(*entry.second); });
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
