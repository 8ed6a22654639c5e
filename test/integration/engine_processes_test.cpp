// SPDX-License-Identifier: Apache-2.0
// The engine and the processes that a program makes: fork, vfork, exec.

#include <csignal>
#include <optional>
#include <set>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

TEST(Engine, LetsAForkedChildGoWithoutBreakpoints) {
  EngineDriver driver;
  driver.engine.set_pass_signals({SIGCHLD});
  const pid_t pid = driver.launch("forks_no_pie", {"fork"});
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("forks_no_pie", "in_child"))));
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("forks_no_pie", "in_parent"))));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  const auto rdi = driver.engine.find(event->thread)->user_regs();
  ASSERT_TRUE(rdi);
  EXPECT_EQ((*rdi)[arch::x86::UserReg::kRdi], 5U);  // the child's own exit status
}

TEST(Engine, LetsAVforkedChildGoWithoutBreakpoints) {
  EngineDriver driver;
  driver.engine.set_pass_signals({SIGCHLD});
  const pid_t pid = driver.launch("forks_no_pie", {"vfork"});
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("forks_no_pie", "in_parent"))));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
}

TEST(Engine, ReportsAForkAndHoldsTheChild) {
  EngineDriver driver;
  driver.engine.set_reported({.fork = true});
  const pid_t pid = driver.launch("forks_no_pie", {"fork"});
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("forks_no_pie", "in_child"))));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kFork);
  ASSERT_NE(driver.engine.find(event->child), nullptr);
  EXPECT_EQ(driver.engine.processes().size(), 2U);
  ASSERT_TRUE(driver.engine.detach(pid));
  const auto in_child = driver.run();
  ASSERT_TRUE(in_child);
  EXPECT_EQ(in_child->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(in_child->thread, event->child);
}

// gdb steps a vfork's call, lets the parent run on until the child has ended, and steps again.
TEST(Engine, AStepOfAVforkEndsWithItsCall) {
  EngineDriver driver{SourceKind::kAuto};
  driver.engine.set_reported({.fork = true, .vfork = true});
  driver.engine.set_pass_signals({SIGCHLD});
  const pid_t pid = driver.launch("forks_no_pie", {"vfork"});
  const ThreadId parent{pid, pid};
  const auto before = symbol_of("forks_no_pie", "before_and_in_vfork");
  ASSERT_TRUE(driver.engine.insert(pid, software(before)));
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_TRUE(driver.engine.remove(pid, software(before)));
  while (event && event->kind != StopKind::kVfork) {
    driver.resume(parent, {.kind = ResumeKind::kStep});
    event = driver.await();
  }
  ASSERT_TRUE(event);
  const auto after_call = driver.engine.find(parent)->pc();
  while (event && event->kind != StopKind::kVforkDone) event = driver.run();
  // The child's end may come between.
  do {
    driver.resume(parent, {.kind = ResumeKind::kStep});
    event = driver.await();
  } while (event && event->thread != parent);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  EXPECT_EQ(driver.engine.find(parent)->pc().value(), after_call.value());
}

// A thread that waits for its vfork child cannot stop before the child has ended.
TEST(Engine, LetsAThreadGoThatWaitsForItsVforkChild) {
  for (const auto source : {SourceKind::kAuto, SourceKind::kStep, SourceKind::kCache}) {
    SCOPED_TRACE(static_cast<int>(source));
    EngineDriver driver{source};
    driver.engine.set_reported({.vfork = true});
    const pid_t pid = driver.launch("forks_no_pie", {"vfork"});
    if (source != SourceKind::kAuto) {
      ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    const auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kVfork);
    driver.resume({pid, pid}, {});
    ASSERT_TRUE(driver.engine.let_go({pid, pid}));
    EXPECT_EQ(driver.engine.processes().size(), 1U);
    ASSERT_TRUE(driver.engine.detach(event->child.pid));
    const auto end = driver.await();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->kind, StopKind::kProcessExited);
    EXPECT_EQ(end->thread.pid, pid);
    EXPECT_EQ(end->exit_code, 0);
  }
}

TEST(Engine, LetsAChildGoThatItCannotFollow) {
  if (test::kSanitized) GTEST_SKIP() << "UBSan looks at types through a pipe, which must be opened";
  EngineDriver driver;
  driver.engine.set_reported({.fork = true});
  driver.launch("forks_no_pie", {"fork"});
  // No file can be opened when the child comes.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd lowest{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest.get()), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto event = driver.run();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal) << "the child's end";
  driver.engine.set_pass_signals({SIGCHLD});
  const auto end = driver.run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
  EXPECT_EQ(end->exit_code, 0);
}

TEST(Engine, FollowsAnExec) {
  EngineDriver driver;
  driver.engine.set_reported({.exec = true});
  const std::string next = std::string{BT_INFERIOR_DIR} + "/plain_no_pie";
  driver.launch("forks_no_pie", {"exec", next, "1", "2", "3"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kExec);
  EXPECT_EQ(event->exec_path, next);
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 4);
}

}  // namespace
}  // namespace backtrail::tracee
