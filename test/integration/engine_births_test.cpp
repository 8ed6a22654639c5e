// SPDX-License-Identifier: Apache-2.0
// Processes made in less usual ways, and children that lose their parents early.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::minutes kPatience{4};

/// Returns false after a minute.
bool come_true(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (done()) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

std::string name_of_source(const ::testing::TestParamInfo<SourceKind>& test) {
  return test.param == SourceKind::kAuto   ? "Plain"
         : test.param == SourceKind::kStep ? "Step"
                                           : "Cache";
}

class EngineBirths : public ::testing::TestWithParam<SourceKind> {
 protected:
  void SetUp() override { driver.engine.set_pass_signals({SIGCHLD}); }

  pid_t launch(const std::string& how) {
    const pid_t pid = driver.launch("births", {how});
    if (GetParam() != SourceKind::kAuto) {
      EXPECT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    return pid;
  }
  void stop_at(pid_t pid, const char* function) {
    EXPECT_TRUE(driver.engine.insert(pid, software(symbol_of("births", function))));
  }
  void expect_exit(int code) {
    const auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, code);
  }

  bool waits_for_vfork(const Thread& parent) {
    // Readable, so that pump() returns although a recorded thread waits.
    const UniqueFd input{::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      driver.engine.pump(input.get());
      if (parent.control().vfork_parent && !parent.stopped()) return true;
    }
    return false;
  }
  /// Waits for the program, which ends with its child's 5.
  void expect_end_of_child() {
    const auto event = driver.await();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, 5);
  }

  EngineDriver driver{GetParam()};
};

TEST_P(EngineBirths, AVforkWithMemoryOfItsOwnIsAForkForClients) {
  driver.engine.set_reported({.fork = true, .vfork = true});
  const pid_t pid = launch("copy-waits");
  stop_at(pid, "in_child");
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kFork);
  const ThreadId child = event->child;
  driver.resume({pid, pid}, {});
  driver.resume(child, {});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint) << "its memory has the breakpoint";
  EXPECT_EQ(event->thread, child);
  ASSERT_TRUE(driver.engine.remove(child.pid, software(symbol_of("births", "in_child"))));
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->thread, child);
  // No end of a vfork is reported, as none began.
  expect_exit(5);
}

// gdb goes on with the step of a fork's call once it has seen the fork: the call is all of it.
TEST_P(EngineBirths, AStepOfACallThatForksEndsWithTheCall) {
  driver.engine.set_reported({.fork = true, .vfork = true});
  const pid_t pid = launch("fork");
  const ThreadId parent{pid, pid};
  stop_at(pid, "syscall");  // the C library's function
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_TRUE(driver.engine.remove(pid, software(symbol_of("births", "syscall"))));
  while (event && event->kind != StopKind::kFork) {
    driver.resume(parent, {.kind = ResumeKind::kStep});
    event = driver.await();
  }
  ASSERT_TRUE(event);
  const auto after_call = driver.engine.find(parent)->pc();
  driver.resume(parent, {.kind = ResumeKind::kStep});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  EXPECT_EQ(driver.engine.find(parent)->pc().value(), after_call.value());
}

// A step that begins at a fork's event executes an instruction.
TEST_P(EngineBirths, AStepAfterAForkLeavesTheCall) {
  driver.engine.set_reported({.fork = true, .vfork = true});
  const pid_t pid = launch("fork");
  const ThreadId parent{pid, pid};
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kFork);
  const auto after_call = driver.engine.find(parent)->pc();
  driver.resume(parent, {.kind = ResumeKind::kStep});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  EXPECT_NE(driver.engine.find(parent)->pc().value(), after_call.value());
}

TEST_P(EngineBirths, AVforkWithMemoryOfItsOwnKeepsBreakpoints) {
  const pid_t pid = launch("copy-waits");
  stop_at(pid, "in_child");
  stop_at(pid, "in_parent");
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(event->thread.pid, pid);
  ASSERT_TRUE(driver.engine.remove(pid, software(symbol_of("births", "in_parent"))));
  expect_exit(5);
}

// gdb sets breakpoints in the child, whose memory is the parent's, and not again in the parent.
TEST_P(EngineBirths, BreakpointsOfAVforksChildBecomeTheParents) {
  for (const char* how : {"slow-vfork", "vfork-execs"}) {
    SCOPED_TRACE(how);
    driver.engine.set_reported({.fork = true, .vfork = true, .exec = true});
    const pid_t pid = launch(how);
    auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kVfork);
    const ThreadId child = event->child;
    stop_at(child.pid, "in_parent");
    if (how == std::string_view{"slow-vfork"}) ::kill(child.pid, SIGUSR2);
    driver.resume(child, {});
    event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->thread.pid, child.pid);
    if (event->kind == StopKind::kExec) {
      EXPECT_FALSE(driver.engine.remove(child.pid, software(symbol_of("births", "in_parent"))));
      ASSERT_TRUE(driver.engine.kill(child.pid));
    } else {
      EXPECT_EQ(event->kind, StopKind::kProcessExited);
    }
    event = driver.run();
    while (event && event->thread.pid == child.pid) event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kVforkDone);
    event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    EXPECT_EQ(event->thread.pid, pid);
    EXPECT_TRUE(driver.engine.remove(pid, software(symbol_of("births", "in_parent"))));
    event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kProcessExited);
  }
}

TEST_P(EngineBirths, OfTwoVforksTheSecondMayEndFirst) {
  const pid_t pid = launch("two-vforks");
  stop_at(pid, "in_child");
  stop_at(pid, "in_parent");
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint) << "back when both have ended";
  ASSERT_TRUE(driver.engine.remove(pid, software(symbol_of("births", "in_parent"))));
  expect_exit(0);
}

// The parent cannot stop, and nobody wants it to once the others go on.
TEST_P(EngineBirths, AVforksParentIsNotStoppedLater) {
  const pid_t pid = launch("slow-vfork");
  driver.resume_all();
  const Thread* parent = driver.engine.find({pid, pid});
  ASSERT_TRUE(waits_for_vfork(*parent));
  driver.engine.while_stopped(pid, [] {});
  const auto children = ProcFs{}.children(pid);
  ASSERT_TRUE(children && !children->empty());
  ::kill(children->front(), SIGUSR2);
  expect_end_of_child();
}

TEST_P(EngineBirths, AVforksParentRunsOnWithTheOthers) {
  const pid_t pid = launch("slow-vfork");
  const pid_t other = driver.launch("plain_no_pie");
  driver.resume_all();
  // The other program's end stops everything.
  const Thread* parent = driver.engine.find({pid, pid});
  ASSERT_TRUE(waits_for_vfork(*parent));
  const auto end = driver.await();
  ASSERT_TRUE(end);
  ASSERT_EQ(end->thread.pid, other);
  const auto children = ProcFs{}.children(pid);
  ASSERT_TRUE(children && !children->empty());
  driver.resume_all();
  ::kill(children->front(), SIGUSR2);
  expect_end_of_child();
}

TEST_P(EngineBirths, ACloneMayVfork) {
  const pid_t pid = launch("vfork-in-clone");
  stop_at(pid, "in_child");
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_NE(event->thread.tid, pid);
  ASSERT_TRUE(driver.engine.remove(pid, software(symbol_of("births", "in_child"))));
  expect_exit(6);
}

// The clone keeps the old memory, in which nobody is left to answer for breakpoints.
TEST_P(EngineBirths, AClonesMakerMayExecuteAnotherProgram) {
  const pid_t pid = launch("maker-execs");
  stop_at(pid, "in_child");
  expect_exit(5);
}

/// The maker is in its fork, whose event nobody has read; the child has stopped.
class EngineOrphans : public EngineBirths {
 protected:
  void SetUp() override {
    EngineBirths::SetUp();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = launch("fork");
    stop_at(pid, "in_child");
  }
  void TearDown() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

  void run_into_fork() {
    const auto children = [&] { return ProcFs{}.children(pid).value_or(std::vector<pid_t>{}); };
    driver.resume_all();
    ASSERT_TRUE(come_true([&] { return !children().empty(); }));
    child = children().front();
    const auto is_traced_stop = [](pid_t id) {
      const auto stat = ProcFs{}.stat(id);
      return stat && stat->state == 't';
    };
    ASSERT_TRUE(come_true([&] { return is_traced_stop(pid) && is_traced_stop(child); }));
  }
  bool is_traced() const {
    const auto status = ProcFs{}.status(child);
    return status && status->tracer_pid != 0;
  }
  int let_child_end() const {
    ::kill(child, SIGCONT);
    siginfo_t info{};
    int done = 0;
    do {
      done = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | __WALL);
    } while (done != 0 && errno == EINTR);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    return info.si_status;
  }

  pid_t pid = 0;
  pid_t child = 0;
};

TEST_P(EngineOrphans, RunOn) {
  run_into_fork();
  // The child waits once it is not traced any more: pump() would reap it.
  ::kill(child, SIGSTOP);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(come_true([&] {
    driver.engine.pump(-1);
    return !is_traced();
  }));
  EXPECT_EQ(let_child_end(), 5) << "no breakpoint is left in its memory";
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessSignalled);
}

TEST_P(EngineOrphans, AreKilledWithTheirMaker) {
  run_into_fork();
  ASSERT_TRUE(driver.engine.kill(pid));
  EXPECT_TRUE(come_true([&] {
    driver.engine.pump(-1);
    const auto stat = ProcFs{}.stat(child);
    return !stat || stat->zombie();
  }));
}

// Thread options of QThreadOptions.
class EngineThreadOptions : public EngineBirths {
 protected:
  /// Launches a program of four threads that reports all clones and ends of threads.
  pid_t launch_threads() {
    const pid_t pid = driver.launch("threads_no_pie");
    if (GetParam() != SourceKind::kAuto) {
      EXPECT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    driver.engine.set_options({pid, pid}, {.clones = true, .exit = true});
    return pid;
  }
};

TEST_P(EngineThreadOptions, ANewThreadWaitsForTheClient) {
  const pid_t pid = launch_threads();
  const ThreadId maker{pid, pid};
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kThreadCloned);
  EXPECT_EQ(event->thread, maker);
  Thread* made = driver.engine.find(event->child);
  ASSERT_NE(made, nullptr);
  EXPECT_TRUE(made->stopped());
  EXPECT_FALSE(made->control().untold);
  EXPECT_EQ(made->control().options, (ThreadOptions{.clones = true, .exit = true}));
  const auto pc = made->pc();
  ASSERT_TRUE(pc);
  for (int i = 0; i < 3; ++i) {
    driver.resume(maker, {.kind = ResumeKind::kStep});
    const auto step = driver.await();
    ASSERT_TRUE(step);
    ASSERT_EQ(step->kind, StopKind::kStep);
  }
  EXPECT_EQ(made->pc().value_or(TraceeAddr{}), *pc);
  driver.resume(event->child, {.kind = ResumeKind::kStep});
  const auto first = driver.await();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, StopKind::kStep);
  EXPECT_EQ(first->thread, event->child);
}

TEST_P(EngineThreadOptions, InNonStopOnlyTheMakerStops) {
  driver.engine.set_non_stop(true);
  const pid_t pid = launch_threads();
  std::set<ThreadId> made;
  std::set<ThreadId> ended;
  auto event = driver.run();
  while (event && event->kind != StopKind::kProcessExited) {
    if (event->kind == StopKind::kThreadCloned) {
      EXPECT_TRUE(made.insert(event->child).second);
      EXPECT_FALSE(driver.engine.is_running(event->child));
      EXPECT_TRUE(driver.engine.find(event->child)->registers()) << "it is stopped";
      driver.resume(event->child, {});
      driver.resume(event->thread, {});
    } else {
      ASSERT_EQ(event->kind, StopKind::kThreadExited);
      EXPECT_TRUE(ended.insert(event->thread).second);
    }
    event = driver.await();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->thread.pid, pid);
  EXPECT_EQ(made.size(), 4U);
  EXPECT_EQ(ended, made);
}

// pthread_join() returns before the kernel reports the end of the thread.
TEST_P(EngineThreadOptions, EndsAreNotReportedWhileAnotherThreadIsStepped) {
  const pid_t pid = launch_threads();
  const ThreadId maker{pid, pid};
  const BreakpointSpec after_joins = software(symbol_of("threads_no_pie", "everyone_left"));
  ASSERT_TRUE(driver.engine.insert(pid, after_joins));
  std::size_t ends = 0;
  auto event = driver.run();
  for (; event && event->kind != StopKind::kSoftwareBreakpoint; event = driver.run()) {
    if (event->kind == StopKind::kThreadExited) ++ends;
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->thread, maker);
  EXPECT_EQ(ends + driver.engine.held_ends().size(), 4U);
  ASSERT_TRUE(driver.engine.remove(pid, after_joins));
  driver.resume(maker, {.kind = ResumeKind::kStep});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  const auto held = driver.engine.held_ends();
  if (!held.empty()) {
    driver.resume(held.front(), {});
    event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kThreadExited);
    EXPECT_EQ(event->thread, held.front());
  }
  driver.engine.update_thread_list();
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
}

// Only threads without a recorder run into a fork by themselves.
INSTANTIATE_TEST_SUITE_P(Sources, EngineOrphans, ::testing::Values(SourceKind::kAuto),
                         [](const auto&) { return "Plain"; });
INSTANTIATE_TEST_SUITE_P(Sources, EngineBirths,
                         ::testing::Values(SourceKind::kAuto, SourceKind::kStep,
                                           SourceKind::kCache),
                         name_of_source);
INSTANTIATE_TEST_SUITE_P(Sources, EngineThreadOptions,
                         ::testing::Values(SourceKind::kAuto, SourceKind::kStep,
                                           SourceKind::kCache),
                         name_of_source);

}  // namespace
}  // namespace backtrail::tracee
