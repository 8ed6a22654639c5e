// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A launched program for tests, killed and reaped at the end of the test.

#include <string>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <gtest/gtest.h>

#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {

[[nodiscard]] inline std::string inferior_path(const std::string& name) {
  return std::string{BT_INFERIOR_DIR} + "/" + name;
}

class TracedProgram {
 public:
  explicit TracedProgram(const std::string& name) {
    LaunchSpec spec;
    spec.program = inferior_path(name);
    spec.through_shell = false;
    start(spec);
  }
  explicit TracedProgram(const LaunchSpec& spec) { start(spec); }
  ~TracedProgram() {
    if (process_.pid == 0) return;
    ::kill(process_.pid, SIGKILL);
    while (true) {
      int raw = 0;
      const pid_t got = ::waitpid(-1, &raw, __WALL);
      if (got < 0 || (got == process_.pid && WaitStatus::decode(raw).ended())) break;
    }
  }
  TracedProgram(const TracedProgram&) = delete;
  TracedProgram& operator=(const TracedProgram&) = delete;

  [[nodiscard]] pid_t pid() const { return process_.pid; }
  [[nodiscard]] const LaunchedProcess& process() const { return process_; }

  /// Runs every thread until one stops with SIGTRAP. Returns its tid, or 0 if the program ended.
  /// Skips system calls and thread events.
  pid_t run_to_trap() {
    EXPECT_TRUE(request::cont(pid()));
    while (true) {
      int raw = 0;
      const pid_t tid = ::waitpid(-1, &raw, __WALL);
      if (tid < 0) return 0;
      const WaitStatus status = WaitStatus::decode(raw);
      if (status.ended() && tid == pid()) {
        process_.pid = 0;
        end_ = status;
        return 0;
      }
      if (status.kind == WaitKind::kStopped && status.signal == SIGTRAP) return tid;
      if (status.stopped())
        (void)request::cont(tid, status.kind == WaitKind::kStopped ? status.signal : 0);
    }
  }
  /// Returns how the program ended, after run_to_trap() returned 0.
  [[nodiscard]] const WaitStatus& end() const { return end_; }

 private:
  void start(const LaunchSpec& spec) {
    auto launched = launch_process(spec);
    if (!launched) {
      ADD_FAILURE() << launch_failure_text(launched.error(), spec);
      return;
    }
    process_ = *launched;
  }

  LaunchedProcess process_;
  WaitStatus end_;
};

}  // namespace backtrail::tracee
