// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/waiter.hpp"

#include <sys/wait.h>

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kSlice{20};
/// Wait slice while a thread must be stopped soon.
constexpr std::chrono::milliseconds kShortSlice{1};

}  // namespace

Waiter::Waited Waiter::wait_for(pid_t tid) {
  // The kernel looks at every traced thread before it answers that none has news.
  if (tid == -1 && !child_signal_.may_have_news()) return Waited::kNothing;
  int raw = 0;
  const pid_t found = ::waitpid(tid, &raw, __WALL | WNOHANG);
  if (found <= 0) {
    if (tid == -1) child_signal_.note_no_news();
    return found == 0 ? Waited::kNothing : Waited::kNotTraced;
  }
  handle(found, WaitStatus::decode(raw));
  return Waited::kHandled;
}

bool Waiter::wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  bool woken = false;
  for (;;) {
    while (!done() && wait_one()) {
    }
    ask_again();
    const bool is_done = done();
    if (is_done || Clock::now() >= deadline) {
      // Other events are left to pump().
      if (woken) ChildSignal::again();
      return is_done;
    }
    if (sleep(-1, slice()) == ChildSignal::Woken::kTimeout) {
      leaders_.look_now();
    } else {
      woken = true;
    }
  }
}

void Waiter::await_fault(const Thread& thread) {
  faults_awaited_.insert_or_assign(thread.tid(), Clock::now());
}

void Waiter::ask_again() {
  demands_.stop_who_is_due();
  if (faults_awaited_.empty()) return;
  const auto now = Clock::now();
  std::erase_if(faults_awaited_, [&](const auto& awaited) {
    const auto& [tid, since] = awaited;
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || thread->stopped()) return true;
    if (now - since < kSlice) return false;
    if (thread->stop_wanted()) (void)thread->interrupt();
    return true;
  });
}

std::chrono::milliseconds Waiter::slice() const {
  return demands_.any_due() ? kShortSlice : kSlice;
}

}  // namespace backtrail::tracee
