// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Steps a program through, as the truth about what the recorder says of it.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/cpu/registers.hpp"
#include "cache_run.hpp"

namespace backtrail::tracee {

/// Number of the record that a place follows, and its pc.
using Place = std::pair<std::uint64_t, TraceeAddr>;

/// Steps a program from main() on, and passes on its signals. Calls `visit` before each instruction
/// of the first thread.
inline void step_through(
    const std::string& program, const std::vector<std::string>& arguments,
    const std::function<void(Thread&, const Place&, const arch::cpu::UserRegs&)>& visit) {
  EngineDriver driver{SourceKind::kStep};
  const pid_t pid = driver.launch(program, arguments);
  const ThreadId id{pid, pid};
  const BreakpointSpec begin = software(symbol_of(program, "main"));
  EXPECT_TRUE(driver.engine.insert(pid, begin));
  EXPECT_TRUE(driver.run());
  EXPECT_TRUE(driver.engine.remove(pid, begin));
  Outcome outcome;
  collect(driver, id, {}, outcome);
  int signal = 0;
  while (Thread* thread = driver.engine.find(id)) {
    thread->trace()->flush();
    const auto regs = thread->user_regs();
    if (!regs) break;
    visit(*thread, {outcome.records().size() - 1, regs->pc()}, *regs);
    driver.resume(id, {.kind = ResumeKind::kStep, .signal = signal});
    const auto event = driver.await();
    if (!event) {
      ADD_FAILURE() << program << " does not end";
      break;
    }
    signal = event->kind == StopKind::kSignal && event->signal != SIGTRAP ? event->signal : 0;
  }
}

}  // namespace backtrail::tracee
