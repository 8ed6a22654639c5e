// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interprets the kernel's wait statuses.

#include <functional>
#include <utility>

#include "ptrace/engine/births.hpp"
#include "ptrace/engine/ends.hpp"
#include "ptrace/engine/execs.hpp"
#include "ptrace/engine/signal_stops.hpp"
#include "ptrace/engine/status_handler.hpp"

namespace backtrail::tracee {

/// Shows a stop to the thread's source first, then gives it to the part of the engine that it
/// concerns.
class StopHandler final : public StatusHandler {
 public:
  /// The parts that handle one kind of stop each.
  struct Kinds {
    Births& births;
    Execs& execs;
    Ends& ends;
    SignalStops& signals;
  };

  /// All arguments must outlive the object.
  StopHandler(const TaskTable& tasks, const EngineSettings& settings, SourceDemands& demands,
              StopCpu& stop_cpu, ThreadRunner& runner, Waiter& waiter, Orphans& orphans,
              Detaching& detaching, const Kinds& kinds)
      : tasks_{tasks},
        settings_{settings},
        demands_{demands},
        stop_cpu_{stop_cpu},
        runner_{runner},
        waiter_{waiter},
        orphans_{orphans},
        detaching_{detaching},
        kinds_{kinds} {}

  /// See Engine.
  void set_on_stranger(std::function<bool(pid_t, const WaitStatus&)> handler) {
    on_stranger_ = std::move(handler);
  }

  void handle(pid_t tid, const WaitStatus& status) override;

 private:
  void handle_unknown(pid_t tid, const WaitStatus& status);
  void handle_stop(Thread& thread, const WaitStatus& status);
  void handle_reported(Thread& thread, const WaitStatus& status);
  void handle_event(Thread& thread, int event);
  void let_fault_come(Thread& thread);
  void note_resumed(Thread& thread);
  void handle_exiting(Thread& thread);
  void handle_trace_request(Thread& thread);
  void handle_syscall(Thread& thread);

  const TaskTable& tasks_;
  const EngineSettings& settings_;
  SourceDemands& demands_;
  StopCpu& stop_cpu_;
  ThreadRunner& runner_;
  Waiter& waiter_;
  Orphans& orphans_;
  Detaching& detaching_;
  Kinds kinds_;
  std::function<bool(pid_t, const WaitStatus&)> on_stranger_;
};

}  // namespace backtrail::tracee
