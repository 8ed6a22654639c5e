// SPDX-License-Identifier: Apache-2.0
// Threads and processes that end when nobody expects it, and requests that another event overtakes.

#include <chrono>
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <sys/eventfd.h>
#include <sys/ptrace.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

/// Pumps until `done`; returns false after a minute.
bool pump_until(Engine& engine, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (std::chrono::steady_clock::now() < deadline) {
    engine.pump(-1);
    if (done()) return true;
    pollfd request{engine.event_fd(), POLLIN, 0};
    ::poll(&request, 1, 10);
  }
  return false;
}

bool has_ended(pid_t pid) {
  const auto stat = ProcFs{}.stat(pid);
  return !stat || stat->zombie();
}

/// Kills a stopped program from outside, and lets the engine see that.
bool kill_outside(Engine& engine, pid_t pid) {
  ::kill(pid, SIGKILL);
  return pump_until(engine, [&] { return !engine.untold_ends().empty(); });
}

bool has_news_in_time(pid_t tid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (!request::has_news(tid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Requests to the thread would be carried out at its PTRACE_EVENT_EXIT.
TEST(EngineEnds, AThreadThatAnExecTakesOutOfItsStopIsGone) {
  EngineDriver driver;
  driver.engine.set_reported({.exec = true});
  const pid_t pid = driver.launch("all_of_it_static", {"exec-thread", "100"});
  const BreakpointSpec at_exec = software(symbol_of("all_of_it_static", "execve"));
  ASSERT_TRUE(driver.engine.insert(pid, at_exec));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  Thread* leader = driver.engine.find(ThreadId{pid, pid});
  ASSERT_NE(leader, nullptr);
  EXPECT_TRUE(leader->stopped());
  EXPECT_FALSE(leader->is_gone());
  ASSERT_TRUE(driver.engine.remove(pid, at_exec));
  driver.resume(event->thread, {});
  ASSERT_TRUE(has_news_in_time(pid));
  EXPECT_TRUE(leader->stopped());
  EXPECT_TRUE(leader->is_gone());
  const auto next = driver.await();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->kind, StopKind::kExec);
}

TEST(EngineEnds, AProgramKilledWhileItIsStoppedIsThereUntilTheClientKnows) {
  EngineDriver driver;
  const pid_t pid = driver.launch("threads_no_pie");
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("threads_no_pie", "everyone_started"))));
  ASSERT_TRUE(driver.run());
  ASSERT_TRUE(kill_outside(driver.engine, pid));
  const auto ends = driver.engine.untold_ends();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_FALSE(ends.front()->threads.empty());
  const auto end = driver.run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessSignalled);
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_TRUE(driver.engine.untold_ends().empty());
}

TEST(EngineEnds, AProgramThatHasEndedCanBeLetGoAndKilled) {
  for (const bool kills : {false, true}) {
    EngineDriver driver;
    const pid_t pid = driver.launch("spin");
    ASSERT_TRUE(kill_outside(driver.engine, pid));
    ASSERT_TRUE(kills ? driver.engine.kill(pid) : driver.engine.detach(pid));
    EXPECT_TRUE(driver.engine.untold_ends().empty());
    EXPECT_FALSE(driver.engine.take_event());
    EXPECT_FALSE(driver.engine.detach(pid));
    EXPECT_FALSE(driver.engine.kill(pid));
  }
}

TEST(EngineEnds, ALeaderThatEndsAloneEndsTheResumedThreads) {
  EngineDriver driver;
  driver.engine.set_reported({.threads = true});
  const pid_t pid = driver.launch("leader_exits", {"traps"});
  // The new thread and the leader's trap, in either order.
  std::set<StopKind> kinds;
  for (int i = 0; i < 2; ++i) {
    const auto event = driver.run();
    ASSERT_TRUE(event);
    kinds.insert(event->kind);
  }
  ASSERT_EQ(kinds, (std::set{StopKind::kThreadCreated, StopKind::kSignal}));
  driver.engine.report_threads(false);
  driver.resume({pid, pid}, {});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kNoResumed);
  EXPECT_TRUE(driver.engine.find({pid, pid})->control().zombie);
  const auto trap = driver.run();
  ASSERT_TRUE(trap);
  EXPECT_EQ(trap->signal, SIGTRAP);
  EXPECT_NE(trap->thread.tid, pid);
}

// The kernel does not report it, and the engine looks for it at intervals.
TEST(EngineEnds, ALeadersEndIsKnownWhenThreadsAreListed) {
  EngineDriver driver;
  driver.engine.set_reported({.threads = true});
  const pid_t pid = driver.launch("leader_exits", {"traps"});
  const ThreadId leader{pid, pid};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(driver.run());
  driver.engine.report_threads(false);
  driver.resume(leader, {});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (!has_ended(pid) && std::chrono::steady_clock::now() < deadline) driver.engine.pump(-1);
  driver.engine.update_thread_list();
  EXPECT_TRUE(driver.engine.find(leader)->control().zombie);
}

TEST(EngineEnds, ALeadersEndIsAnEventForWhoWantsThreadEvents) {
  EngineDriver driver;
  driver.engine.set_non_stop(true);
  driver.engine.set_reported({.threads = true});
  const pid_t pid = driver.launch("leader_exits", {"traps"});
  const ThreadId leader{pid, pid};
  auto event = driver.run();
  // Others are the leader's trap, the new thread, and that one's trap.
  for (int others = 0; event && event->kind != StopKind::kThreadExited && others < 3; ++others) {
    const bool goes_on = event->thread == leader || event->kind == StopKind::kThreadCreated;
    if (goes_on) driver.resume(event->thread, {});
    event = driver.await();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kThreadExited);
  EXPECT_EQ(event->thread, leader);
}

TEST(EngineEnds, AChildWhoseForkWasNotToldIsLetGoWithItsParent) {
  for (const bool kills : {false, true}) {
    EngineDriver driver;
    driver.engine.set_reported({.fork = true});
    const pid_t pid = driver.launch("forks_no_pie", {"fork"});
    driver.resume_all();
    const auto& pending = driver.engine.find({pid, pid})->control().pending;
    ASSERT_TRUE(pump_until(driver.engine, [&] { return pending.has_value(); }));
    const pid_t child = pending->child.pid;
    ASSERT_NE(driver.engine.find(child), nullptr);
    ASSERT_TRUE(kills ? driver.engine.kill(pid) : driver.engine.detach(pid));
    EXPECT_EQ(driver.engine.find(child), nullptr);
    EXPECT_TRUE(pump_until(driver.engine, [&] { return has_ended(child); }));
  }
}

TEST(EngineEnds, AChildWhoseForkWasNotToldOutlivesItsParent) {
  EngineDriver driver;
  driver.engine.set_reported({.fork = true});
  const pid_t pid = driver.launch("forks_no_pie", {"fork"});
  driver.resume_all();
  const auto& pending = driver.engine.find({pid, pid})->control().pending;
  ASSERT_TRUE(pump_until(driver.engine, [&] { return pending.has_value(); }));
  const pid_t child = pending->child.pid;
  ASSERT_TRUE(kill_outside(driver.engine, pid));
  EXPECT_EQ(driver.engine.find(child), nullptr);
  EXPECT_TRUE(pump_until(driver.engine, [&] { return has_ended(child); }));
}

// The event answers the request: a client that resumes the thread does not expect another stop.
TEST(EngineRequests, AStopAskedForIsAnsweredOnce) {
  EngineDriver driver;
  driver.engine.set_non_stop(true);
  const pid_t pid = driver.launch("plain_no_pie");
  const ThreadId thread{pid, pid};
  for (int i = 0; i < 300; ++i) {
    driver.resume(thread, {.kind = ResumeKind::kStep});
    driver.resume(thread, {.kind = ResumeKind::kStop});
    auto event = driver.await();
    ASSERT_TRUE(event);
    driver.resume(thread, {.kind = ResumeKind::kStep});
    event = driver.await();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kStep) << "in turn " << i;
  }
}

TEST(EngineRequests, AnEventDoesNotSwallowACtrlC) {
  for (const bool before : {false, true}) {
    EngineDriver driver;
    const pid_t pid = driver.launch("churn_no_pie", {"1"});
    const BreakpointSpec breakpoint = software(symbol_of("churn_no_pie", "between_rounds"));
    ASSERT_TRUE(driver.engine.insert(pid, breakpoint));
    driver.resume_all();
    const auto& pending = driver.engine.find({pid, pid})->control().pending;
    ASSERT_TRUE(pump_until(driver.engine, [&] { return pending.has_value(); }));
    if (before) driver.engine.interrupt();
    auto event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    // The client may not have seen the stop yet.
    if (!before) driver.engine.interrupt();
    event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kSignal);
    EXPECT_EQ(event->signal, SIGINT);
    ASSERT_TRUE(driver.engine.remove(pid, breakpoint));
    event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kProcessExited) << "it is told once";
  }
}

TEST(EngineRequests, ACtrlCWaitsForAVforksEnd) {
  EngineDriver driver;
  driver.engine.set_reported({.vfork = true});
  const pid_t pid = driver.launch("forks_no_pie", {"vfork"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kVfork);
  driver.engine.set_reported({});
  const ThreadId child = event->child;
  driver.resume({pid, pid}, {});
  driver.engine.interrupt();
  ASSERT_TRUE(driver.engine.detach(child.pid));
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGINT);
  EXPECT_EQ(event->thread.pid, pid);
}

// In the middle of clone() the registers do not have its result yet. A client that saved and
// restored them would make the program believe that the call failed.
TEST(EngineRequests, NobodyStopsInTheMiddleOfAClone) {
  // Readable, so that pump() returns after each batch.
  const UniqueFd input{::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
  for (const auto source : {SourceKind::kAuto, SourceKind::kCache}) {
    EngineDriver driver{source};
    const pid_t pid = driver.launch("churn_no_pie", {"100000"});
    if (source == SourceKind::kCache) {
      ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    driver.resume_all();
    for (int i = 0; i < 100; ++i) {
      driver.engine.stop_all();
      for (const auto& thread : driver.engine.find(pid)->threads()) {
        ASSERT_FALSE(thread->stopped() && !thread->control().pending &&
                     thread->status().is_event(PTRACE_EVENT_CLONE));
      }
      driver.engine.while_stopped(pid, [] {});
      driver.engine.pump(input.get());
    }
  }
}

// A breakpoint with a false condition, where the program has a breakpoint instruction of its own.
TEST(EngineRequests, AFalseConditionHidesTheProgramsOwnTrap) {
  for (const auto source : {SourceKind::kAuto, SourceKind::kStep, SourceKind::kCache}) {
    SCOPED_TRACE(static_cast<int>(source));
    EngineDriver driver{source};
    const pid_t pid = driver.launch("own_trap");
    if (source != SourceKind::kAuto) {
      ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    int hits = 0;
    ASSERT_TRUE(driver.engine.insert(pid, {.kind = BreakpointKind::kSoftware,
                                           .address = symbol_of("own_trap", "own_trap"),
                                           .condition = [&](ThreadId) {
                                             ++hits;
                                             return false;
                                           }}));
    const auto end = driver.run();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->kind, StopKind::kProcessExited);
    EXPECT_EQ(end->exit_code, 1);
    EXPECT_EQ(hits, 1);
  }
}

// gdb has functions that it calls return to a breakpoint on the stack, and wants SIGSEGV there even
// if the program's are none of its business.
TEST(EngineRequests, AFaultAtABreakpointIsNeverPassedUnseen) {
  EngineDriver driver;
  driver.engine.set_pass_signals({SIGSEGV});
  const pid_t pid = driver.launch("plain_no_pie");
  Thread* thread = driver.engine.find({pid, pid});
  auto call = thread->registers();
  ASSERT_TRUE(call);
  const std::uint64_t stack = call->user[arch::x86::UserReg::kRsp];
  call->user[arch::x86::UserReg::kRip] = stack;
  ASSERT_TRUE(thread->set_registers(*call));
  ASSERT_TRUE(driver.engine.insert(pid, software(TraceeAddr{stack})));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGSEGV);
}

}  // namespace
}  // namespace backtrail::tracee
