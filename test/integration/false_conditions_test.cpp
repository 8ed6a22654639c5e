// SPDX-License-Identifier: Apache-2.0
// Threads hit a breakpoint whose condition is false, again and again: no other thread waits long,
// and no hit is lost or evaluated twice.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

constexpr const char* kProgram = "hot_threads";

/// How the program is recorded.
enum class Recorded { kNot, kStep, kCache };

struct FalseConditions : testing::TestWithParam<Recorded> {
  FalseConditions()
      : driver{GetParam() == Recorded::kStep ? SourceKind::kStep : SourceKind::kCache} {}

  /// Recording begins in main().
  void launch(const std::vector<std::string>& arguments) {
    pid = driver.launch(kProgram, arguments);
    ASSERT_NE(pid, 0);
    if (GetParam() == Recorded::kNot) return;
    const BreakpointSpec main = software(symbol_of(kProgram, "main"));
    ASSERT_TRUE(driver.engine.insert(pid, main));
    ASSERT_TRUE(driver.run());
    ASSERT_TRUE(driver.engine.remove(pid, main));
    ASSERT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kPt}));
  }
  /// Inserts a breakpoint whose condition counts its hits and is false.
  void insert(const std::string& symbol) {
    ASSERT_TRUE(driver.engine.insert(pid, {.kind = BreakpointKind::kSoftware,
                                           .address = symbol_of(kProgram, symbol),
                                           .condition = [this](ThreadId id) {
                                             ++hits[id];
                                             if (std::exchange(stop_at_next_hit, false)) {
                                               ::syscall(SYS_tgkill, pid, id.tid, SIGSTOP);
                                             }
                                             return false;
                                           }}));
  }
  /// Resumes with the reported signals; returns the next event.
  std::optional<StopEvent> go_on() {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const Process* process : driver.engine.processes()) {
      for (const auto& thread : process->threads()) {
        const bool is_it = last && last->kind == StopKind::kSignal && last->thread == thread->id();
        orders.emplace_back(thread->id(), ResumeAction{.signal = is_it ? last->signal : 0});
      }
    }
    EXPECT_TRUE(driver.engine.resume(orders));
    last = driver.await();
    return last;
  }

  /// Pumps until `done`; returns false after a minute.
  bool pump_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (std::chrono::steady_clock::now() < deadline) {
      // With input waiting, the engine returns although threads of a stopped process may run.
      driver.engine.pump(input.get());
      EXPECT_FALSE(driver.engine.take_event());
      if (done()) return true;
      pollfd request{driver.engine.event_fd(), POLLIN, 0};
      ::poll(&request, 1, 10);
    }
    return false;
  }
  [[nodiscard]] int all_hits() const {
    int sum = 0;
    for (const auto& [id, count] : hits) sum += count;
    return sum;
  }

  EngineDriver driver;
  UniqueFd input{::eventfd(1, EFD_CLOEXEC)};  ///< Always readable.
  pid_t pid = 0;
  std::map<ThreadId, int> hits;
  bool stop_at_next_hit = false;  ///< The thread's process gets SIGSTOP before the thread goes on.
  std::optional<StopEvent> last;
};

TEST_P(FalseConditions, OfSomeThreadsDoNotHideASignalOfAnother) {
  constexpr std::size_t kThreads = 6;
  launch({std::to_string(kThreads), "0"});
  insert("hot");
  for (int signals = 0; signals < 20 || hits.size() < kThreads; ++signals) {
    const auto event = go_on();
    ASSERT_TRUE(event) << "after " << signals << " signals";
    ASSERT_EQ(event->kind, StopKind::kSignal);
    ASSERT_EQ(event->signal, SIGUSR1);
  }
}

TEST_P(FalseConditions, AreLookedAtOnceForEachTimeThatAThreadGetsThere) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 100;
  launch({std::to_string(kThreads), std::to_string(kCalls)});
  insert("hot");
  const TraceeAddr done = symbol_of(kProgram, "calls_done");
  ASSERT_TRUE(driver.engine.insert(pid, {.kind = BreakpointKind::kSoftware, .address = done}));
  do {
    ASSERT_TRUE(go_on());
  } while (last->kind == StopKind::kSignal);
  EXPECT_EQ(last->kind, StopKind::kSoftwareBreakpoint);
  EXPECT_EQ(hits.size(), static_cast<std::size_t>(kThreads));
  for (const auto& [id, count] : hits) EXPECT_EQ(count, kCalls) << id.tid;
}

TEST_P(FalseConditions, OnASystemCallThatBlocksLetOthersRun) {
  launch({"sleep"});
  insert("blocking_call");
  const auto event = go_on();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kProcessExited);
  EXPECT_EQ(event->exit_code, 0);
  EXPECT_EQ(hits.size(), 1U);
}

TEST_P(FalseConditions, DoNotKeepTheClientsStopWaiting) {
  launch({"6", "0"});
  ASSERT_TRUE(go_on());  // the first thread's; it then waits
  insert("hot");
  for (int stops = 0; stops < 20; ++stops) {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const auto& thread : driver.engine.find(pid)->threads()) {
      if (thread->tid() != pid) orders.emplace_back(thread->id(), ResumeAction{});
    }
    ASSERT_TRUE(driver.engine.resume(orders));
    driver.engine.pump(-1);
    driver.engine.interrupt();
    const auto event = driver.await();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kSignal);
    EXPECT_EQ(event->signal, SIGINT);
  }
}

/// When the breakpoint is removed, some threads have executed its instruction without a report so
/// far.
TEST_P(FalseConditions, ARemovedBreakpointIsNoTrapOfTheProgram) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20;
  launch({std::to_string(kThreads), "0"});
  ASSERT_TRUE(go_on());
  driver.engine.set_non_stop(true);
  std::vector<std::pair<ThreadId, ResumeAction>> others;
  const auto let_others_go = [&] {
    others.clear();
    for (const auto& thread : driver.engine.find(pid)->threads()) {
      if (thread->tid() != pid) others.emplace_back(thread->id(), ResumeAction{});
    }
    ASSERT_TRUE(driver.engine.resume(others));
  };
  let_others_go();
  for (int i = 0; i < kTimes; ++i) {
    hits.clear();
    insert("hot");
    while (hits.empty()) driver.engine.pump(-1);
    ASSERT_TRUE(driver.engine.remove(
        pid, {.kind = BreakpointKind::kSoftware, .address = symbol_of(kProgram, "hot")}));
    driver.engine.stop_all();
    const auto event = driver.engine.take_event();
    ASSERT_FALSE(event) << static_cast<int>(event->kind);
    driver.engine.while_stopped(pid, [] {});
  }
  ASSERT_TRUE(driver.engine.detach(pid));
  EXPECT_EQ(::kill(pid, SIGKILL), 0) << "it has died of being let go";
}

/// Whoever stops the process finds it stopped until SIGCONT.
TEST_P(FalseConditions, DoNotKeepAStoppedProcessGoing) {
  constexpr std::size_t kThreads = 3;
  constexpr int kQuiet = 20;
  launch({std::to_string(kThreads), "0"});
  driver.engine.set_pass_signals({SIGUSR1, SIGSTOP, SIGCONT});
  insert("hot");
  driver.resume_all();
  for (int i = 0; i < 3; ++i) {
    hits.clear();
    ASSERT_TRUE(pump_until([&] { return hits.size() == kThreads; }));
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    int before = 0;
    int quiet = 0;
    EXPECT_TRUE(pump_until([&] {
      quiet = all_hits() == before ? quiet + 1 : 0;
      before = all_hits();
      return quiet == kQuiet;
    }));
    ASSERT_EQ(::kill(pid, SIGCONT), 0);
    EXPECT_TRUE(pump_until([&] { return all_hits() > before; }));
  }
}

/// A client may step a thread of a stopped process: it must be stepped over the breakpoint.
TEST_P(FalseConditions, AreNotLookedAtAgainWhenAStoppedThreadIsStepped) {
  launch({"1", "0"});
  driver.engine.set_pass_signals({SIGUSR1, SIGSTOP, SIGCONT});
  insert("hot");
  stop_at_next_hit = true;
  driver.resume_all();
  const Process& process = *driver.engine.find(pid);
  ASSERT_TRUE(pump_until([&] {
    return std::ranges::all_of(process.threads(),
                               [](const auto& thread) { return thread->status().is_group_stop(); });
  }));
  driver.engine.interrupt();
  ASSERT_TRUE(driver.await());
  ASSERT_EQ(hits.size(), 1U);
  const auto [id, count] = *hits.begin();
  Thread* thread = driver.engine.find(id);
  ASSERT_EQ(thread->pc().value_or(TraceeAddr{}), symbol_of(kProgram, "hot"));
  driver.resume(id, {.kind = ResumeKind::kStep});
  const auto event = driver.await();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kStep);
  EXPECT_NE(thread->pc().value_or(TraceeAddr{}), symbol_of(kProgram, "hot"));
  EXPECT_EQ(hits[id], count);
}

std::string name_of(const testing::TestParamInfo<Recorded>& tested) {
  if (tested.param == Recorded::kNot) return "Native";
  return tested.param == Recorded::kStep ? "Step" : "Cache";
}

INSTANTIATE_TEST_SUITE_P(Sources, FalseConditions,
                         testing::Values(Recorded::kNot, Recorded::kStep, Recorded::kCache),
                         name_of);

}  // namespace
}  // namespace backtrail::tracee
