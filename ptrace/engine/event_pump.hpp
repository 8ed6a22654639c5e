// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Handles what has happened to traced threads.

#include <cstddef>

#include "ptrace/engine/cpu_sharing.hpp"
#include "ptrace/engine/orphans.hpp"
#include "ptrace/engine/recording.hpp"
#include "ptrace/engine/step_overs.hpp"
#include "ptrace/engine/stop_cpu.hpp"
#include "ptrace/engine/waiter.hpp"

namespace backtrail::tracee {

/// Gives each part of the engine that has work its turn, until there is an event for the client.
class EventPump {
 public:
  /// All arguments must outlive the object.
  EventPump(const TaskTable& tasks, PendingEvents& events, SourceDemands& demands,
            StopCpu& stop_cpu, CpuSharing& cpu_sharing, ZombieLeaders& leaders, Waiter& waiter,
            Recording& recording, Orphans& orphans, StepOvers& step_overs)
      : tasks_{tasks},
        events_{events},
        demands_{demands},
        stop_cpu_{stop_cpu},
        cpu_sharing_{cpu_sharing},
        leaders_{leaders},
        waiter_{waiter},
        recording_{recording},
        orphans_{orphans},
        step_overs_{step_overs} {}

  /// See Engine.
  void pump(int input_fd);

 private:
  int handle_batch();
  bool serve_asking();
  void ask_each();
  bool wait_in_turn();
  bool poll_for_stop();

  const TaskTable& tasks_;
  PendingEvents& events_;
  SourceDemands& demands_;
  StopCpu& stop_cpu_;
  CpuSharing& cpu_sharing_;
  ZombieLeaders& leaders_;
  Waiter& waiter_;
  Recording& recording_;
  Orphans& orphans_;
  StepOvers& step_overs_;
  std::size_t handled_since_asked_ = 0;  ///< Stops handled since the last ask_each().
};

}  // namespace backtrail::tracee
