// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/event_pump.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <poll.h>
#include <sched.h>

#include "ptrace/engine/thread_traces.hpp"

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;

/// How long pump() may go on by itself.
constexpr std::chrono::milliseconds kPumpFor{20};
/// Number of stops handled before the client's input is checked again.
constexpr int kPumpBatch = 256;
/// How long to look for further requests after a thread was served. A stop and a wake-up take both
/// sides about as long.
constexpr std::chrono::microseconds kServeFor{50};
/// How long to look for the next stop after one was handled. Sleeping costs a wake-up of the CPU,
/// which takes as long as many a stop.
constexpr std::chrono::microseconds kStopsFor{100};
/// Number of looks for requests between two looks for stops, which cost a system call.
constexpr unsigned kLooksForEachWait = 8;
/// Number of superblocks made ahead between two such looks for stops: a stop waits for some 20
/// microseconds.
constexpr unsigned kMadeForEachWait = 4;
/// How long a thread's stop may be hidden by stops of others that take long to handle, and how much
/// longer for each thread: asking one takes half a microsecond.
constexpr std::chrono::milliseconds kHiddenFor{10};
constexpr std::chrono::microseconds kHiddenForEach{10};
/// Number of requests served before other threads are looked at.
constexpr unsigned kServedAtOnce = 64;

bool input_waits(int fd) {
  if (fd < 0) return false;
  pollfd request{fd, POLLIN, 0};
  return ::poll(&request, 1, 0) > 0;
}

/// Returns true if a thread may need the tracing thread at any moment.
bool executes_in_software(const TaskTable& tasks) {
  const auto does = [](const auto& thread) {
    return !thread->stopped() &&
           (thread->control().action.kind == ResumeKind::kRangeStep ||
            (thread->trace() && (thread->trace()->source().kind() == SourceKind::kStep ||
                                 thread->trace()->source().kind() == SourceKind::kCache)));
  };
  return std::ranges::any_of(tasks.processes(), [&](const auto& entry) {
    const Process& process = *entry.second;
    return process.any_not_stopped() && std::ranges::any_of(process.threads(), does);
  });
}

}  // namespace

void EventPump::pump(int input_fd) {
  waiter_.drain();
  const auto until = Clock::now() + kPumpFor;
  for (;;) {
    recording_.read_buffers();  // takes the timer that look() sets
    cpu_sharing_.look();
    const int handled = handle_batch();
    waiter_.ask_again();
    orphans_.let_all_go();
    if (events_.any()) return;
    if (handled == 0 && leaders_.look()) return;
    if (step_overs_.make_round()) {
      if (input_waits(input_fd) || Clock::now() >= until) return ChildSignal::again();
      continue;
    }
    const bool may_wait = executes_in_software(tasks_) || waiter_.awaits_faults();
    if (!may_wait) {
      if (handled != 0) (void)leaders_.look();
      return;
    }
    if (waiter_.sleep(input_fd, waiter_.slice()) == ChildSignal::Woken::kInput) return;
  }
}

/// Handles wait statuses and requests until there is none, or so many that the client's input must
/// be looked at. Returns their number.
int EventPump::handle_batch() {
  const Clock::duration hidden_for = kHiddenFor + kHiddenForEach * tasks_.threads().size();
  int handled = 0;
  auto asked = Clock::now();
  while (handled < kPumpBatch && (waiter_.wait_one() || serve_asking() || wait_in_turn() ||
                                  (handled != 0 && poll_for_stop()))) {
    ++handled;
    ++handled_since_asked_;
    if (Clock::now() - asked < hidden_for) continue;
    ask_each();
    asked = Clock::now();
  }
  if (handled == kPumpBatch) {
    if (handled_since_asked_ >= tasks_.threads().size()) ask_each();
    ChildSignal::again();  // there may be more
  }
  return handled;
}

/// Polls for requests and stops of threads for as long as that is likely to pay. Returns true once
/// a stop or a number of requests was handled.
bool EventPump::serve_asking() {
  if (!demands_.any_asking()) return false;
  // Polling pays only on a CPU that nobody else needs, least of all the thread.
  const bool polls = !stop_cpu_.narrowed() && demands_.may_poll();
  bool is_idle = false;
  Clock::time_point until;
  unsigned served = 0;
  unsigned made = 0;
  for (unsigned looks = 1; served < kServedAtOnce; ++looks) {
    if (demands_.serve_one()) {
      ++served;
      is_idle = false;
    }
    if (looks % kLooksForEachWait != 0 && polls) continue;
    if (made % kMadeForEachWait == 0 && waiter_.wait_one()) return true;
    const bool worked = polls && demands_.work_ahead();
    made = worked ? made + 1 : 0;
    const auto now = Clock::now();
    if (worked || !is_idle) until = now + (polls ? kServeFor : Clock::duration{});
    is_idle = true;
    if (now >= until) {
      demands_.let_wait();
      return served != 0;
    }
  }
  return true;
}

/// Waits for each running thread separately. Call once in as many handled stops as there are
/// threads, or after a while: the kernel reports threads in its own order, so a few threads that
/// always have news hide the others from Waiter::wait_one().
void EventPump::ask_each() {
  handled_since_asked_ = 0;
  std::vector<pid_t> running;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (!thread->stopped()) running.push_back(tid);
  }
  for (const pid_t tid : running) waiter_.wait_one(tid);
}

/// Yields to the thread that shares the calling thread's CPU. Returns true if a stop was handled
/// afterwards.
bool EventPump::wait_in_turn() {
  if (!stop_cpu_.in_turns() || events_.any()) return false;
  ::sched_yield();
  // Otherwise the stop's signal would call the client's loop back here for nothing.
  waiter_.drain();
  return waiter_.wait_one();
}

/// Looks for a stop as long as one is likely to come, if nobody else needs the CPU. Returns true if
/// a stop was handled.
bool EventPump::poll_for_stop() {
  if (events_.any() || stop_cpu_.narrowed() || !executes_in_software(tasks_)) return false;
  const auto until = Clock::now() + kStopsFor;
  while (demands_.may_poll() && Clock::now() < until) {
    if (waiter_.wait_one()) return true;
  }
  return false;
}

}  // namespace backtrail::tracee
