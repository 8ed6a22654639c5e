// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Steps over breakpoints whose conditions are false.

#include "ptrace/engine/pending_events.hpp"
#include "ptrace/engine/step_over_queue.hpp"
#include "ptrace/engine/stopper.hpp"

namespace backtrail::tracee {

/// The instruction runs with the breakpoint lifted, while no other thread of the process runs.
/// Threads that reach such a breakpoint wait, and all of them are stepped over in one round, so
/// that other events are handled between two rounds.
class StepOvers {
 public:
  /// All arguments must outlive the object.
  StepOvers(const TaskTable& tasks, PendingEvents& events, StepOverQueue& queue,
            ThreadRunner& runner, Waiter& waiter, Stopper& stopper)
      : tasks_{tasks},
        events_{events},
        queue_{queue},
        runner_{runner},
        waiter_{waiter},
        stopper_{stopper} {}

  /// Makes one round. Returns false if no thread waits.
  bool make_round();

 private:
  void step_over(Thread& thread);

  const TaskTable& tasks_;
  PendingEvents& events_;
  StepOverQueue& queue_;
  ThreadRunner& runner_;
  Waiter& waiter_;
  Stopper& stopper_;
};

}  // namespace backtrail::tracee
