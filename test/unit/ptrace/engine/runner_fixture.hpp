// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A ThreadRunner over fake tasks, with all that it needs.

#include <gtest/gtest.h>

#include "fake_tasks.hpp"
#include "ptrace/engine/thread_runner.hpp"

namespace backtrail::tracee {

class RunnerFixture : public testing::Test {
 protected:
  FakeTasks tasks_;
  EngineSettings settings_;
  PendingEvents events_{tasks_.table(), settings_};
  CtrlC ctrl_c_{tasks_.table()};
  StepOverQueue step_overs_;
  SourceDemands demands_{tasks_.table()};
  StopCpu stop_cpu_;
  WakeUps wake_ups_{-1};
  CpuSharing cpu_sharing_{settings_, stop_cpu_, wake_ups_};
  ThreadRunner runner_{tasks_.table(), events_, ctrl_c_, step_overs_, demands_, cpu_sharing_};
};

}  // namespace backtrail::tracee
