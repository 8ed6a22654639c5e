// SPDX-License-Identifier: Apache-2.0
// The engine's rules on real programs: reported events, passed signals, and no remains afterwards.

#include "ptrace/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <pty.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "test/support/machine.hpp"

namespace backtrail::tracee {
namespace {

/// A minute, because machines may be busy.
class Deadline {
 public:
  [[nodiscard]] bool over() const { return std::chrono::steady_clock::now() > end_; }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::minutes{1};
};

/// Launches four threads with thread events on.
pid_t run_threads_with_events(EngineDriver& driver) {
  const pid_t pid = driver.launch("threads");
  driver.engine.report_threads(true);
  driver.resume_all();
  return pid;
}

/// Pumps without taking events until `enough`.
void let_happen(EngineDriver& driver, const std::function<bool()>& enough) {
  const Deadline deadline;
  while (!enough()) {
    ASSERT_FALSE(deadline.over());
    driver.engine.pump(-1);
    pollfd request{driver.engine.event_fd(), POLLIN, 0};
    ::poll(&request, 1, 100);
  }
}

/// Turns thread events off: the only event left is the end.
void expect_only_the_end(EngineDriver& driver) {
  driver.engine.report_threads(false);
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
}

TEST(Engine, EndsOfThreadsAreNoNewsForAClientThatHasStoppedListening) {
  EngineDriver driver;
  const pid_t pid = run_threads_with_events(driver);
  for (int created = 0; created < 4; ++created) {
    const auto event = driver.await();
    ASSERT_TRUE(event && event->kind == StopKind::kThreadCreated);
    driver.resume_all();
  }
  let_happen(driver, [&] { return driver.engine.find(pid) == nullptr; });
  expect_only_the_end(driver);
}

TEST(Engine, NewThreadsGoOnWhenTheClientStopsListening) {
  EngineDriver driver;
  const pid_t pid = run_threads_with_events(driver);
  let_happen(driver, [&] {
    const Process* process = driver.engine.find(pid);
    return process == nullptr || process->threads().size() == 5;
  });
  expect_only_the_end(driver);
}

TEST(Engine, RunsAProgramToItsEnd) {
  EngineDriver driver;
  const pid_t pid = driver.launch("plain_no_pie", {"a", "b"});
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 3);
  EXPECT_EQ(event->thread.pid, pid);
  EXPECT_EQ(driver.engine.find(pid), nullptr);
}

TEST(Engine, RecordsNothingUnlessAsked) {
  EngineDriver driver;
  const pid_t pid = driver.launch("plain_no_pie", {"a", "b"});
  Thread* thread = driver.engine.find({pid, pid});
  ASSERT_NE(thread, nullptr);
  EXPECT_TRUE(thread->trace() == nullptr);
  // Each resumption yields one event: the program must not stop before its end.
  driver.resume({pid, pid}, {});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
}

TEST(Engine, ReportsAFatalSignalTwice) {
  EngineDriver driver;
  driver.launch("plain_no_pie", {"x"});
  auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGABRT);
  driver.resume(event->thread, {.signal = SIGABRT});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessSignalled);
  EXPECT_EQ(event->signal, SIGABRT);
}

TEST(Engine, StopsAtABreakpointWithThePcOnIt) {
  EngineDriver driver;
  const pid_t pid = driver.launch("plain_no_pie");
  const TraceeAddr address = symbol_of("plain_no_pie", "constant_text");
  ASSERT_TRUE(driver.engine.insert(pid, software(address)));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(driver.engine.find(event->thread)->pc().value(), address);
  std::array<std::uint8_t, 1> byte{};
  EXPECT_EQ(driver.engine.find(pid)->read_memory(address, byte), 1U);
  EXPECT_NE(byte[0], 0xcc);
}

TEST(Engine, GoesOnWhereAConditionIsFalse) {
  EngineDriver driver;
  const pid_t pid = driver.launch("calls_no_pie");
  BreakpointSpec spec = software(symbol_of("calls_no_pie", "add"));
  int asked = 0;
  spec.condition = [&asked](ThreadId) { return ++asked == 3; };
  ASSERT_TRUE(driver.engine.insert(pid, spec));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(asked, 3);
}

TEST(Engine, StepsOneInstruction) {
  EngineDriver driver;
  const pid_t pid = driver.launch("three_steps");
  const ThreadId id{pid, pid};
  const TraceeAddr before = driver.engine.find(id)->pc().value();
  driver.resume(id, {.kind = ResumeKind::kStep});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  const TraceeAddr after = driver.engine.find(id)->pc().value();
  EXPECT_GT(after, before);
  EXPECT_LE(after - before, 15U);
}

TEST(Engine, ReportsAWatchpointWithItsAddress) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  EngineDriver driver;
  const pid_t pid = driver.launch("calls_no_pie");
  const TraceeAddr address = symbol_of("calls_no_pie", "global");
  ASSERT_TRUE(
      driver.engine.insert(pid, {.kind = BreakpointKind::kWrite, .address = address, .length = 4}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kWatchpoint);
  EXPECT_EQ(event->address, address);
}

TEST(Engine, ReportsAHardwareBreakpoint) {
  if (!tracee::debug_registers_trap()) GTEST_SKIP() << tracee::kNoDebugTraps;
  EngineDriver driver;
  const pid_t pid = driver.launch("calls_no_pie");
  const TraceeAddr address = symbol_of("calls_no_pie", "touch_global");
  ASSERT_TRUE(driver.engine.insert(pid, {.kind = BreakpointKind::kHardware, .address = address}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kHardwareBreakpoint);
  EXPECT_EQ(driver.engine.find(event->thread)->pc().value(), address);
}

TEST(Engine, PassesSignalsSilentlyWhenAsked) {
  EngineDriver driver;
  driver.engine.set_pass_signals({SIGUSR1, SIGUSR2, SIGALRM, SIGRTMIN});
  driver.launch("signals");
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 21);
}

TEST(Engine, SuppressesASignal) {
  EngineDriver driver;
  driver.launch("signals");
  auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->signal, SIGUSR1);
  driver.engine.set_pass_signals({SIGUSR1, SIGUSR2, SIGALRM, SIGRTMIN});
  event = driver.run();  // the first one is dropped
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 11);
}

TEST(Engine, StopsEveryThreadForOneEvent) {
  EngineDriver driver;
  const pid_t pid = driver.launch("threads_no_pie");
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("threads_no_pie", "everyone_worked"))));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
  const Process* process = driver.engine.find(pid);
  EXPECT_EQ(process->threads().size(), 5U);
  for (const auto& thread : process->threads()) EXPECT_TRUE(thread->stopped());
}

TEST(Engine, HandsOutTheEventsOfSeveralThreadsOneByOne) {
  EngineDriver driver;
  const pid_t pid = driver.launch("threads_no_pie");
  const TraceeAddr address = symbol_of("threads_no_pie", "work_done");
  ASSERT_TRUE(driver.engine.insert(pid, software(address)));
  std::map<pid_t, int> hits;
  for (int i = 0; i < 4; ++i) {
    const auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    ++hits[event->thread.tid];
    // gdb steps over a breakpoint in this way: remove it, step this thread alone, insert it.
    ASSERT_TRUE(driver.engine.remove(pid, software(address)));
    driver.resume(event->thread, {.kind = ResumeKind::kStep});
    const auto step = driver.await();
    ASSERT_TRUE(step);
    ASSERT_EQ(step->kind, StopKind::kStep);
    ASSERT_EQ(step->thread, event->thread);
    ASSERT_TRUE(driver.engine.insert(pid, software(address)));
  }
  EXPECT_EQ(hits.size(), 4U);
  const auto end = driver.run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
}

TEST(Engine, SurvivesThreadsThatComeAndGo) {
  EngineDriver driver;
  const pid_t pid = driver.launch("churn_no_pie");
  const TraceeAddr address = symbol_of("churn_no_pie", "between_rounds");
  ASSERT_TRUE(driver.engine.insert(pid, software(address)));
  int rounds = 0;
  for (;;) {
    const auto event = driver.run();
    ASSERT_TRUE(event);
    if (event->kind == StopKind::kProcessExited) break;
    ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    ++rounds;
    ASSERT_TRUE(driver.engine.remove(pid, software(address)));
    driver.resume(event->thread, {.kind = ResumeKind::kStep});
    ASSERT_TRUE(driver.await());
    ASSERT_TRUE(driver.engine.insert(pid, software(address)));
  }
  EXPECT_EQ(rounds, 25);
}

TEST(Engine, GoesOnWhenWhoHasStoppedIsEndedByAnExec) {
  EngineDriver driver;
  const pid_t pid = driver.launch("renews");
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("renews", "here"))));
  driver.resume_all();
  // No event has been taken yet, so the other two threads run.
  const auto standing = [&]() -> std::optional<pid_t> {
    driver.engine.pump(-1);
    const auto& threads = driver.engine.find(pid)->threads();
    const auto stopped = [](const auto& thread) { return thread->stopped(); };
    const auto starting = [](const auto& thread) { return thread->control().starting; };
    if (threads.size() < 3 || std::count_if(threads.begin(), threads.end(), stopped) != 1 ||
        std::any_of(threads.begin(), threads.end(), starting)) {
      return {};
    }
    // The thread must stand at the breakpoint, not where it creates another thread.
    const auto& only = *std::find_if(threads.begin(), threads.end(), stopped);
    return only->control().pending ? std::optional{only->tid()} : std::nullopt;
  };
  std::optional<pid_t> stands;
  for (const Deadline limit; !stands && !limit.over();) stands = standing();
  ASSERT_TRUE(stands);
  const std::array<std::uint8_t, 1> one{1};
  ASSERT_TRUE(driver.engine.find(pid)->write_memory(symbol_of("renews", "go_on"), one));
  const auto dead = [&] {
    const auto status = ProcFs{}.status(*stands);
    return !status || status->state == 'Z';
  };
  for (const Deadline limit; !dead() && !limit.over();) std::this_thread::yield();
  ASSERT_TRUE(dead());
  const auto end = driver.await();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
  EXPECT_EQ(end->exit_code, 23);
}

TEST(Engine, InterruptsAProgramThatSpins) {
  EngineDriver driver;
  driver.launch("spin");
  driver.resume_all();
  driver.engine.pump(-1);
  driver.engine.interrupt();
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGINT);
  // The interruption leaves no state in the program: it can be stepped.
  driver.resume(event->thread, {.kind = ResumeKind::kStep});
  const auto step = driver.await();
  ASSERT_TRUE(step);
  EXPECT_EQ(step->kind, StopKind::kStep);
}

TEST(Engine, ReportsSystemCallsTwice) {
  EngineDriver driver;
  driver.engine.set_pass_signals({SIGCHLD});
  const pid_t pid = driver.launch("forks_no_pie", {"vfork"});
  driver.engine.find(pid)->catch_syscalls = std::set<std::int64_t>{231};  // exit_group
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSyscallEntry);
  EXPECT_EQ(event->syscall, 231);
}

TEST(Engine, LeavesAnAttachedProcessAsItWas) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte = 0;
    ::close(pipe_fds[1]);
    _exit(::read(pipe_fds[0], &byte, 1) == 1 ? byte : 99);
  }
  ::close(pipe_fds[0]);
  {
    EngineDriver driver;
    const auto attached = driver.engine.attach(pid);
    ASSERT_TRUE(attached) << attached.error().message();
    EXPECT_TRUE(driver.engine.find(pid)->attached());
    driver.resume_all();
    driver.engine.pump(-1);
    driver.engine.interrupt();
    const auto event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->signal, SIGINT);
    ASSERT_TRUE(driver.engine.detach(pid));
  }
  const char byte = 42;
  ASSERT_EQ(::write(pipe_fds[1], &byte, 1), 1);
  int raw = 0;
  ASSERT_EQ(::waitpid(pid, &raw, 0), pid);
  EXPECT_EQ(WaitStatus::decode(raw).exit_code, 42);
  ::close(pipe_fds[1]);
}

// A client that calls a function has it return to a breakpoint on the stack, which cannot be
// executed. The signal is not the program's.
TEST(Engine, DetachesWithoutTheFaultOfACallByTheClient) {
  EngineDriver driver;
  const pid_t pid = driver.launch("plain_no_pie");
  Thread* thread = driver.engine.find({pid, pid});
  ASSERT_NE(thread, nullptr);
  const auto before = thread->registers();
  ASSERT_TRUE(before);
  auto call = *before;
  call.user[arch::x86::UserReg::kRip] = call.user[arch::x86::UserReg::kRsp];
  ASSERT_TRUE(thread->set_registers(call));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->signal, SIGSEGV);
  ASSERT_TRUE(thread->set_registers(*before));
  ASSERT_TRUE(driver.engine.detach(pid));
  int raw = 0;
  ASSERT_EQ(::waitpid(pid, &raw, 0), pid);
  EXPECT_EQ(WaitStatus::decode(raw).describe(), "exited 1");
}

// Other threads may also have executed the breakpoint when they are asked to stop.
TEST(Engine, LeavesNoTrapBehindWhenManyThreadsHitABreakpoint) {
  const TraceeAddr address = symbol_of("churn_no_pie", "visit");
  for (int round = 0; round < 60; ++round) {
    EngineDriver driver;
    const pid_t pid = driver.launch("churn_no_pie");
    ASSERT_TRUE(driver.engine.insert(pid, software(address)));
    const auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    ASSERT_TRUE(driver.engine.remove(pid, software(address)));
    ASSERT_TRUE(driver.engine.detach(pid));
    int raw = 0;
    ASSERT_EQ(::waitpid(pid, &raw, 0), pid);
    ASSERT_EQ(WaitStatus::decode(raw).describe(), "exited 0") << "round " << round;
  }
}

TEST(Engine, RefusesAProcessThatIsNotThere) {
  EngineDriver driver;
  const auto attached = driver.engine.attach(0x3fffff);
  ASSERT_FALSE(attached);
  EXPECT_TRUE(attached.error().is(TraceErrc::kTraceeGone));
}

/// Makes a process with a second thread, traces that thread, tells the process's id, and waits.
[[noreturn]] void trace_a_thread(int told) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::thread{[] {
      for (;;) ::pause();
    }}.join();
  }
  pid_t tid = pid;
  while (tid == pid) {
    for (const pid_t task : ProcFs{}.tasks(pid).value_or(std::vector<pid_t>{})) {
      if (task != pid) tid = task;
    }
  }
  const bool seized = ::ptrace(PTRACE_SEIZE, tid, nullptr, PTRACE_O_EXITKILL) == 0;
  const pid_t answer = seized ? pid : 0;
  if (::write(told, &answer, sizeof answer) != sizeof answer) _exit(1);
  for (;;) ::pause();
}

TEST(Engine, RefusesAProcessOfWhichAnotherTracesAThread) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  const pid_t tracer = ::fork();
  if (tracer == 0) trace_a_thread(pipe_fds[1]);
  ::close(pipe_fds[1]);
  pid_t pid = 0;
  ASSERT_EQ(::read(pipe_fds[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_NE(pid, 0);
  {
    EngineDriver driver;
    const auto attached = driver.engine.attach(pid);
    ASSERT_FALSE(attached);
    EXPECT_TRUE(attached.error().is(std::errc::operation_not_permitted));
    EXPECT_TRUE(driver.engine.processes().empty());
  }
  EXPECT_EQ(ProcFs{}.status(pid).value().tracer_pid, 0);  // the leader is let go
  ::kill(tracer, SIGKILL);
  EXPECT_EQ(::waitpid(tracer, nullptr, 0), tracer);
  ::close(pipe_fds[0]);
}

TEST(Engine, KillsWhatItLaunched) {
  pid_t pid = 0;
  {
    EngineDriver driver;
    pid = driver.launch("spin");
    driver.resume_all();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// Runs in a new session with a terminal. The exit code tells what failed.
[[noreturn]] void let_a_program_go_on_a_terminal() {
  pid_t pid = 0;
  {
    EngineDriver driver;
    pid = driver.launch("spin");
    if (::tcgetpgrp(STDIN_FILENO) != pid) ::_exit(1);
    if (!driver.engine.detach(pid)) ::_exit(2);
    if (::tcgetpgrp(STDIN_FILENO) != pid) ::_exit(3);
  }
  const bool back = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  ::kill(pid, SIGKILL);
  EngineDriver driver;
  pid = driver.launch("spin");
  if (!driver.engine.kill(pid)) ::_exit(4);
  const bool again = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  ::_exit(back && again ? 0 : 5);
}

TEST(Engine, TakesTheTerminalBack) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "no pseudo terminal: " << std::strerror(errno);
  if (child == 0) let_a_program_go_on_a_terminal();
  int raw = 0;
  ASSERT_EQ(::waitpid(child, &raw, 0), child);
  EXPECT_EQ(WaitStatus::decode(raw).describe(), "exited 0");
  ::close(terminal);
}

TEST(Engine, NonStopLeavesTheOthersRunning) {
  EngineDriver driver;
  driver.engine.set_non_stop(true);
  const pid_t pid = driver.launch("threads_no_pie");
  ASSERT_TRUE(driver.engine.insert(pid, software(symbol_of("threads_no_pie", "work_done"))));
  driver.resume_all();
  std::map<pid_t, int> hits;
  for (int i = 0; i < 4; ++i) {
    const auto event = driver.await();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    EXPECT_FALSE(driver.engine.is_running(event->thread));
    ++hits[event->thread.tid];
  }
  EXPECT_EQ(hits.size(), 4U);
  EXPECT_TRUE(driver.engine.is_running({pid, pid}));
  driver.resume({pid, pid}, {.kind = ResumeKind::kStop});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStopped);
  EXPECT_EQ(event->thread.tid, pid);
}

TEST(Engine, TellsWhenAskedToStopAThreadThatWasStopped) {
  EngineDriver driver;
  driver.engine.set_non_stop(true);
  const pid_t pid = driver.launch("spin");
  driver.resume({pid, pid}, {.kind = ResumeKind::kStop});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStopped);
  driver.resume({pid, pid}, {.kind = ResumeKind::kStop});
  driver.engine.pump(-1);
  EXPECT_FALSE(driver.engine.take_event());
}

}  // namespace
}  // namespace backtrail::tracee
