// SPDX-License-Identifier: Apache-2.0
// Processes that share the program's memory: for a client they are threads of the program.

#include <csignal>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// The source, and whether the kernel reports the clones as forks.
class EngineClones : public ::testing::TestWithParam<std::tuple<SourceKind, bool>> {
 protected:
  pid_t launch(std::vector<std::string> arguments) {
    if (std::get<bool>(GetParam())) arguments.insert(arguments.begin(), "like-fork");
    const pid_t pid = driver.launch("clones", arguments);
    if (std::get<SourceKind>(GetParam()) != SourceKind::kAuto) {
      EXPECT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    EXPECT_TRUE(driver.engine.insert(pid, software(symbol_of("clones", "in_clone"))));
    EXPECT_TRUE(driver.engine.insert(pid, software(symbol_of("clones", "in_maker"))));
    return pid;
  }

  /// Steps the thread over the breakpoint at which it stopped, and runs on.
  std::optional<StopEvent> go_on(const StopEvent& at) {
    const auto pc = driver.engine.find(at.thread)->pc();
    EXPECT_TRUE(pc && driver.engine.remove(at.thread.pid, software(*pc)));
    driver.resume(at.thread, {.kind = ResumeKind::kStep});
    const auto step = driver.await();
    EXPECT_TRUE(step && step->kind == StopKind::kStep);
    EXPECT_TRUE(driver.engine.insert(at.thread.pid, software(*pc)));
    return driver.run();
  }

  void SetUp() override {
    // Clones like forks send it at their end, and so do all after an exec.
    driver.engine.set_pass_signals({SIGCHLD});
    driver.engine.set_reported({.fork = true});
  }

  EngineDriver driver{std::get<SourceKind>(GetParam())};
};

TEST_P(EngineClones, StopAtBreakpointsLikeThreads) {
  const pid_t pid = launch({"first"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(event->thread.pid, pid);
  EXPECT_NE(event->thread.tid, pid);
  EXPECT_EQ(driver.engine.processes().size(), 1U);
  EXPECT_EQ(driver.engine.find(pid)->threads().size(), 2U);
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(event->thread, (ThreadId{pid, pid}));
  EXPECT_EQ(driver.engine.find(pid)->threads().size(), 1U);
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 7);
}

TEST_P(EngineClones, OutliveTheirMaker) {
  const pid_t pid = launch({"last"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  const ThreadId clone = event->thread;
  EXPECT_NE(clone.tid, pid);
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->thread, (ThreadId{pid, pid}));
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(event->thread, clone);
  EXPECT_EQ(driver.engine.find(pid)->threads().size(), 1U);
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->thread.pid, pid);
  EXPECT_EQ(event->exit_code, 4) << "the maker's own status";
}

TEST_P(EngineClones, GetTheirSignals) {
  const pid_t pid = launch({"fault"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  event = go_on(*event);
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGSEGV);
  driver.resume(event->thread, {.signal = SIGSEGV});
  event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint) << "it ends alone";
  EXPECT_EQ(event->thread, (ThreadId{pid, pid}));
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->exit_code, 100 + SIGSEGV);
}

TEST_P(EngineClones, LeaveWithAnotherProgram) {
  const pid_t pid = launch({"exec", std::string{BT_INFERIOR_DIR} + "/plain_no_pie", "1", "2"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_NE(event->thread.tid, pid);
  event = go_on(*event);
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(event->thread, (ThreadId{pid, pid}));
  event = go_on(*event);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 3);
}

TEST_P(EngineClones, AreLetGoAndKilledWithTheirMaker) {
  for (const bool kills : {false, true}) {
    const pid_t pid = launch({"last"});
    const auto event = driver.run();
    ASSERT_TRUE(event);
    const pid_t clone = event->thread.tid;
    ASSERT_TRUE(kills ? driver.engine.kill(pid) : driver.engine.detach(pid));
    EXPECT_TRUE(driver.engine.processes().empty());
    const auto lives = [&] {
      const auto stat = ProcFs{}.stat(clone);
      return stat && !stat->zombie();
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (lives() && std::chrono::steady_clock::now() < deadline) driver.engine.pump(-1);
    EXPECT_FALSE(lives());
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, EngineClones,
                         ::testing::Combine(::testing::Values(SourceKind::kAuto, SourceKind::kStep,
                                                              SourceKind::kCache),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           const auto source = std::get<SourceKind>(test.param);
                           const bool like_fork = std::get<bool>(test.param);
                           const char* name = source == SourceKind::kAuto   ? "Plain"
                                              : source == SourceKind::kStep ? "Step"
                                                                            : "Cache";
                           return std::string{name} + (like_fork ? "LikeForks" : "");
                         });

}  // namespace
}  // namespace backtrail::tracee
