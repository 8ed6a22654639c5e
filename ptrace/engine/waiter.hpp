// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Waits for traced threads.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "ptrace/engine/source_demands.hpp"
#include "ptrace/engine/status_handler.hpp"
#include "ptrace/engine/zombie_leaders.hpp"
#include "ptrace/os/child_signal.hpp"

namespace backtrail::tracee {

/// The only caller of waitpid() for whatever threads do. Passes each wait status to the handler.
class Waiter {
 public:
  /// Limit for threads that stop, or end a step, when they get a CPU.
  static constexpr std::chrono::milliseconds kStarvedLimit{60'000};

  /// All arguments must outlive the object.
  Waiter(const TaskTable& tasks, SourceDemands& demands, ZombieLeaders& leaders,
         ChildSignal& child_signal)
      : tasks_{tasks}, demands_{demands}, leaders_{leaders}, child_signal_{child_signal} {}
  /// Must be called before the first wait; `handler` must outlive all waits.
  void set_handler(StatusHandler& handler) { handler_ = &handler; }

  /// Handles one wait status if there is one. Does not wait.
  /// @param tid Of this thread only; -1: of any.
  bool wait_one(pid_t tid = -1) { return wait_for(tid) == Waited::kHandled; }
  enum class Waited : std::uint8_t {
    kHandled,
    kNothing,
    kNotTraced,  ///< There is no tracee or child of this id.
  };
  /// As wait_one().
  Waited wait_for(pid_t tid);
  /// Passes on a wait status that somebody has waited for before.
  void handle(pid_t tid, const WaitStatus& status) { handler_->handle(tid, status); }
  /// Handles wait statuses until `done` returns true, or for `limit`. Returns done()'s last result.
  bool wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit);
  /// Waits until a thread has news or `input_fd` (-1: none) is readable.
  ChildSignal::Woken sleep(int input_fd, std::chrono::milliseconds limit) {
    return child_signal_.wait(input_fd, limit);
  }
  /// Returns the time after which ask_again() should be called.
  [[nodiscard]] std::chrono::milliseconds slice() const;
  /// Call before all wait statuses are handled: sleep() then returns for new ones only.
  void drain() { child_signal_.drain(); }

  /// Call when a requested stop was postponed for a signal that an instruction of the thread has
  /// raised. The thread is asked again if the signal does not come.
  void await_fault(const Thread& thread);
  [[nodiscard]] bool awaits_faults() const { return !faults_awaited_.empty(); }
  /// Asks the threads to stop whose sources want that now, and those whose faults have not come.
  void ask_again();

 private:
  using Clock = std::chrono::steady_clock;

  const TaskTable& tasks_;
  SourceDemands& demands_;
  ZombieLeaders& leaders_;
  ChildSignal& child_signal_;
  StatusHandler* handler_ = nullptr;
  /// Threads whose requested stop waits until the signal that an instruction raised has come, with
  /// the time since when.
  std::map<pid_t, Clock::time_point> faults_awaited_;
};

}  // namespace backtrail::tracee
