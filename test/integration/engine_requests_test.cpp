// SPDX-License-Identifier: Apache-2.0
// Requests of the client that meet ends, births and other programs.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/debug_register_check.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/effort.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

/// Returns false after a minute.
bool come_true(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (std::chrono::steady_clock::now() < deadline) {
    if (done()) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

bool pump_until(Engine& engine, const std::function<bool()>& done) {
  // For a recorded program pump() goes on until there is input.
  const UniqueFd input{::eventfd(1, EFD_CLOEXEC)};
  return come_true([&] {
    engine.pump(input.get());
    return done();
  });
}

char state_of(pid_t pid) {
  const auto stat = ProcFs{}.task_stat(pid, pid);
  return stat ? stat->state : '?';
}

/// Lets the other thread of `thread_execs` execute the program.
void let_execute(Engine& engine, const std::string& fifo) {
  UniqueFd writer;
  ASSERT_TRUE(pump_until(engine, [&] {
    writer.reset(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return static_cast<bool>(writer);
  }));
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
}

/// Starts an inferior of the build without tracing it.
pid_t spawn(const std::string& name, std::string argument = {}) {
  std::string program = std::string{BT_INFERIOR_DIR} + "/" + name;
  char* const arguments[] = {program.data(), argument.empty() ? nullptr : argument.data(), nullptr};
  pid_t pid = 0;
  EXPECT_EQ(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, nullptr), 0);
  return pid;
}

/// A program whose leader has ended, while its other thread waits for SIGUSR1.
class WithoutLeader : public ::testing::Test {
 protected:
  pid_t launch() {
    driver.engine.set_pass_signals({SIGUSR1});
    const pid_t pid = driver.launch("leader_exits", {"waits"});
    driver.resume_all();
    EXPECT_TRUE(pump_until(driver.engine, [&] {
      return driver.engine.find({pid, pid})->control().zombie;
    }));
    return pid;
  }

  EngineDriver driver;
};

TEST_F(WithoutLeader, TheOtherThreadAnswersACtrlC) {
  const pid_t pid = launch();
  driver.resume({pid, pid}, {});
  driver.engine.interrupt();
  auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGINT);
  EXPECT_NE(event->thread.tid, pid);
  driver.resume({pid, pid}, {});
  event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kNoResumed) << "the leader does not run any more";
}

TEST_F(WithoutLeader, AnAttachedProgramEnds) {
  for (const int signal : {SIGUSR1, SIGKILL}) {
    const pid_t pid = spawn("leader_exits", "waits");
    ASSERT_TRUE(come_true([&] { return state_of(pid) == 'Z'; }));
    driver.engine.set_pass_signals({SIGUSR1});
    ASSERT_TRUE(driver.engine.attach(pid));
    driver.resume_all();
    ::kill(pid, signal);
    const auto event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->thread.pid, pid);
    EXPECT_EQ(event->kind,
              signal == SIGKILL ? StopKind::kProcessSignalled : StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, signal == SIGKILL ? 0 : 3);
    EXPECT_TRUE(driver.engine.processes().empty());
    ::waitpid(pid, nullptr, 0);
  }
}

// The thread takes over an id that the server has not attached to.
TEST_F(WithoutLeader, AnAttachedThreadExecutesAProgram) {
  const pid_t pid = spawn("leader_exits", "executes");
  ASSERT_TRUE(come_true([&] { return state_of(pid) == 'Z'; }));
  driver.engine.set_pass_signals({SIGUSR1});
  driver.engine.set_reported({.exec = true});
  ASSERT_TRUE(driver.engine.attach(pid));
  driver.resume_all();
  ::kill(pid, SIGUSR1);
  auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kExec);
  EXPECT_EQ(event->thread, (ThreadId{pid, pid}));
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 0);
  ::waitpid(pid, nullptr, 0);
}

/// A program that executes itself all the time, with several threads.
class ExecutesItself : public ::testing::TestWithParam<const char*> {
 protected:
  ~ExecutesItself() override {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  pid_t pid = spawn("executes_itself", GetParam());
};

// The thread that executes a program takes over the leader's id, traced or not, and ends the
// others.
TEST_P(ExecutesItself, IsAttachedToWhole) {
  const unsigned rounds = test::cases(60);
  for (unsigned round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    EngineDriver driver;
    const auto attached = driver.engine.attach(pid);
    ASSERT_TRUE(attached) << attached.error().message();
    const auto tasks = ProcFs{}.tasks(pid);
    ASSERT_TRUE(tasks);
    std::vector<pid_t> known;
    for (const auto& thread : driver.engine.find(pid)->threads()) {
      EXPECT_TRUE(thread->stopped()) << thread->tid();
      known.push_back(thread->tid());
    }
    EXPECT_FALSE(driver.engine.find(pid)->any_not_stopped());
    std::ranges::sort(known);
    EXPECT_EQ(known, *tasks);
    ASSERT_TRUE(driver.engine.detach(pid));
  }
}

INSTANTIATE_TEST_SUITE_P(EngineRequests, ExecutesItself,
                         ::testing::Values("thread", "leader", "third"),
                         [](const auto& its) { return std::string{its.param}; });

TEST_F(WithoutLeader, EndsOfThreadsAreNotToldAfterADetach) {
  driver.engine.set_non_stop(true);
  driver.engine.set_pass_signals({SIGUSR1});
  const pid_t pid = driver.launch("leader_exits", {"waits"});
  driver.resume_all();
  // Once the other thread runs, which its own beginning must not hold up, its leader's end is an
  // event.
  ASSERT_TRUE(pump_until(driver.engine, [&] {
    const auto& threads = driver.engine.find(pid)->threads();
    return threads.size() == 2 && !threads.back()->control().starting;
  }));
  driver.engine.set_reported({.threads = true});
  ASSERT_TRUE(pump_until(driver.engine, [&] {
    return driver.engine.find({pid, pid})->control().zombie;
  }));
  ASSERT_TRUE(driver.engine.detach(pid));
  EXPECT_FALSE(driver.engine.take_event());
  ::kill(pid, SIGKILL);
}

TEST(EngineInterrupts, AnExecOfAnotherThreadDoesNotSwallowACtrlC) {
  const test::TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const bool told : {false, true}) {
    EngineDriver driver;
    driver.engine.set_reported({.exec = told});
    const pid_t pid = driver.launch("thread_execs", {fifo});
    auto event = driver.run();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->signal, SIGUSR1);
    driver.resume_all();  // without the signal, which would end it
    let_execute(driver.engine, fifo);
    // The exec has ended the leader; the engine does not know that.
    ASSERT_TRUE(come_true([&] { return state_of(pid) == 't'; }));
    driver.engine.interrupt();
    event = driver.await();
    ASSERT_TRUE(event);
    if (told) {
      EXPECT_EQ(event->kind, StopKind::kExec);
      event = driver.run();
      ASSERT_TRUE(event);
    }
    EXPECT_EQ(event->kind, StopKind::kSignal);
    EXPECT_EQ(event->signal, SIGINT);
    event = driver.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, 7);
  }
}

TEST(EngineRequests, NoSignalForAThreadReachesTheProgramThatReplacesIt) {
  const test::TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EngineDriver driver;
  driver.engine.set_non_stop(true);
  const pid_t pid = driver.launch("thread_execs", {fifo});
  const auto signal = driver.run();
  ASSERT_TRUE(signal);
  ASSERT_EQ(signal->signal, SIGUSR1);
  Thread* leader = driver.engine.find({pid, pid});
  ASSERT_NE(leader, nullptr);
  let_execute(driver.engine, fifo);
  ASSERT_TRUE(come_true([&] {
    const auto tasks = ProcFs{}.tasks(pid);
    return tasks && tasks->size() == 1 && state_of(pid) == 't';
  }));
  EXPECT_EQ(leader->send_again(SIGTRAP), ESRCH);
  const auto end = driver.await();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
  EXPECT_EQ(end->exit_code, 7);
}

TEST(EngineInterrupts, ACtrlCIsNotKeptForAnotherProgram) {
  EngineDriver driver;
  const pid_t first = driver.launch("plain_no_pie");
  const pid_t second = driver.launch("plain_no_pie");
  driver.engine.interrupt();
  ASSERT_TRUE(driver.engine.kill(first));
  driver.resume({second, second}, {});
  auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  driver.launch("spin");
  driver.engine.interrupt();
  driver.launch("plain_no_pie");
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
}

TEST(EngineInterrupts, ACtrlCIsNotKeptForAnotherClient) {
  EngineDriver driver;
  driver.launch("plain_no_pie");
  driver.engine.interrupt();
  driver.engine.forget_interrupt();
  const auto event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
}

TEST(EngineInterrupts, ACtrlCIsAnsweredByAnotherProcess) {
  EngineDriver driver;
  const pid_t first = driver.launch("spin");
  const pid_t second = driver.launch("spin");
  driver.resume_all();
  ::kill(std::min(first, second), SIGKILL);
  ASSERT_TRUE(come_true([&] { return state_of(std::min(first, second)) == 'Z'; }));
  driver.engine.interrupt();
  auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessSignalled);
  event = driver.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSignal);
  EXPECT_EQ(event->signal, SIGINT);
  EXPECT_EQ(event->thread.pid, std::max(first, second));
}

TEST(EngineForks, AForkWhoseChildIsDeadIsNotTold) {
  for (const char* how : {"fork", "copy-waits"}) {
    EngineDriver driver;
    driver.engine.set_pass_signals({SIGCHLD});
    driver.engine.set_reported({.fork = true, .vfork = true});
    const pid_t pid = driver.launch("births", {how});
    driver.resume_all();
    const auto& pending = driver.engine.find({pid, pid})->control().pending;
    ASSERT_TRUE(pump_until(driver.engine, [&] { return pending.has_value(); }));
    const pid_t child = pending->child.pid;
    ::kill(child, SIGKILL);
    ASSERT_TRUE(pump_until(driver.engine, [&] { return driver.engine.find(child) == nullptr; }));
    const auto event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, 100 + SIGKILL);
  }
}

// gdb inserts them in programs that run when it works in non-stop mode inside.
void expect_a_watchpoint_catches(SourceKind source, bool is_recorded) {
  EngineDriver driver{source};
  const pid_t pid = driver.launch("spin_no_pie", {"1"});
  if (is_recorded) {
    ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {TraceFormat::kBts, 1 << 16}));
  }
  driver.engine.set_non_stop(true);
  driver.resume_all();
  // Both threads wait when they have set this.
  const TraceeAddr turns = symbol_of("spin_no_pie", "turns");
  std::array<std::uint8_t, 8> bytes{};
  ASSERT_TRUE(pump_until(driver.engine, [&] {
    return driver.engine.find(pid)->read_memory(turns, bytes) == bytes.size() && bytes[0] > 3;
  }));
  const BreakpointSpec written{.kind = BreakpointKind::kWrite, .address = turns, .length = 8};
  ASSERT_TRUE(driver.engine.insert(pid, written));
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kWatchpoint);
  EXPECT_EQ(event->address, turns);
}

TEST(EngineRequests, AWatchpointCatchesAProgramThatRuns) {
  if (!debug_registers_trap()) GTEST_SKIP() << kNoDebugTraps;
  expect_a_watchpoint_catches(SourceKind::kStep, false);
}

TEST(EngineRequests, AWatchpointCatchesARecordedProgramThatRuns) {
  if (!debug_registers_trap()) GTEST_SKIP() << kNoDebugTraps;
  expect_a_watchpoint_catches(SourceKind::kCache, true);
}

}  // namespace
}  // namespace backtrail::tracee
