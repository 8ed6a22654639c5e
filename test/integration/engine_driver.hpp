// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs an Engine like a server's loop, with a deadline.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include <gtest/gtest.h>

#include "arch/base/log.hpp"
#include "ptrace/engine/engine.hpp"

namespace backtrail::tracee {

class EngineDriver {
 public:
  explicit EngineDriver(SourceKind source = SourceKind::kStep) : engine{source} {}
  /// Fails the test if an error was logged.
  ~EngineDriver() { EXPECT_EQ(log::errors(), errors_before_) << "see the log"; }
  EngineDriver(const EngineDriver&) = delete;
  EngineDriver& operator=(const EngineDriver&) = delete;

  Engine engine;
  /// Launched programs keep random addresses, as where the kernel forbids fixed ones.
  bool random_addresses = false;

  /// Launches an inferior of the build, with a small environment: C libraries read all of it at
  /// their start, step by step. Returns 0 and fails the test on error.
  pid_t launch(const std::string& name, std::vector<std::string> arguments = {}) {
    LaunchSpec spec;
    spec.program = std::string{BT_INFERIOR_DIR} + "/" + name;
    spec.arguments = std::move(arguments);
    spec.through_shell = false;
    spec.disable_randomization = !random_addresses;
    spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
    const auto pid = engine.launch(spec);
    if (!pid) ADD_FAILURE() << pid.error().message();
    return pid.value_or(0);
  }

  void resume_all(ResumeKind kind = ResumeKind::kContinue) {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const Process* process : engine.processes()) {
      for (const auto& thread : process->threads()) {
        orders.emplace_back(thread->id(), ResumeAction{.kind = kind});
      }
    }
    ASSERT_TRUE(engine.resume(orders));
  }

  void resume(ThreadId id, const ResumeAction& action) {
    const std::pair<ThreadId, ResumeAction> order{id, action};
    ASSERT_TRUE(engine.resume(std::span{&order, 1}));
  }

  /// Returns the next event; nullopt after four minutes (machines may be busy).
  std::optional<StopEvent> await() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{240};
    while (std::chrono::steady_clock::now() < deadline) {
      engine.pump(-1);
      if (auto event = engine.take_event()) return event;
      pollfd request{engine.event_fd(), POLLIN, 0};
      ::poll(&request, 1, 100);
    }
    return std::nullopt;
  }

  /// Resumes all threads and returns the next event.
  std::optional<StopEvent> run() {
    resume_all();
    return await();
  }

 private:
  std::uint64_t errors_before_ = log::errors();
};

inline BreakpointSpec software(TraceeAddr address) {
  return {.kind = BreakpointKind::kSoftware, .address = address};
}

}  // namespace backtrail::tracee
