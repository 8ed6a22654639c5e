// SPDX-License-Identifier: Apache-2.0
// While a thread stops all the time, it shares the tracing thread's CPU. A program that asks for
// its affinity, or hands it down, must not find out.

#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "test/support/own_affinity.hpp"

namespace backtrail::tracee {
namespace {

constexpr const char* kProgram = "affinity_static";
constexpr std::int64_t kNeverMade = SYS_reboot;

/// How the program is recorded; kNotButCaught: not, and the client catches a system call that it
/// does not make.
enum class Recorded { kNot, kNotButCaught, kStep, kCache };

struct SharedCpu : testing::TestWithParam<Recorded> {
  EngineDriver driver{GetParam() == Recorded::kStep ? SourceKind::kStep : SourceKind::kCache};

  pid_t launch(const char* rounds, const char* signals) {
    driver.engine.set_pass_signals({SIGUSR1, SIGCHLD});
    const pid_t pid = driver.launch(kProgram, {rounds, signals, test::allowed_cpus()});
    if (GetParam() == Recorded::kNotButCaught) {
      driver.engine.find(pid)->catch_syscalls = std::set<std::int64_t>{kNeverMade};
    }
    if (GetParam() == Recorded::kStep || GetParam() == Recorded::kCache) {
      EXPECT_TRUE(driver.engine.enable_trace({pid, pid}, {.format = TraceFormat::kBts}));
    }
    return pid;
  }
  static void expect_right_end(const std::optional<StopEvent>& end) {
    ASSERT_TRUE(end);
    EXPECT_EQ(end->kind, StopKind::kProcessExited);
    EXPECT_EQ(end->exit_code, 0);
  }
};

TEST_P(SharedCpu, IsNotSeenByAThreadThatIsStepped) {
  const pid_t pid = launch("1", "3");
  std::optional<StopEvent> event;
  do {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const auto& thread : driver.engine.find(pid)->threads()) {
      ResumeAction action;
      if (thread->tid() == pid) {
        action = {.kind = ResumeKind::kRangeStep,
                  .range_begin = TraceeAddr{0},
                  .range_end = TraceeAddr{std::numeric_limits<std::uint64_t>::max()}};
      }
      // A thread that is stepped tells every signal.
      if (event && event->thread == thread->id()) action.signal = event->signal;
      orders.emplace_back(thread->id(), action);
    }
    ASSERT_TRUE(driver.engine.resume(orders));
    event = driver.await();
  } while (event && event->kind == StopKind::kSignal);
  expect_right_end(event);
}

TEST_P(SharedCpu, IsNotSeenAmidFalseConditions) {
  const bool slow = GetParam() == Recorded::kStep;
  const int rounds = slow ? 1 : 8;
  const pid_t pid = launch(slow ? "1" : "8", "50");
  int hits = 0;
  ASSERT_TRUE(driver.engine.insert(pid, {.kind = BreakpointKind::kSoftware,
                                         .address = symbol_of(kProgram, "on_signal"),
                                         .condition = [&](ThreadId) {
                                           ++hits;
                                           return false;
                                         }}));
  expect_right_end(driver.run());
  EXPECT_EQ(hits, 50 * (rounds * 7 + 2));
}

/// Makes single steps of a client.
struct SharedCpuOfSteps : testing::Test {
  EngineDriver driver;
  pid_t pid = 0;
  cpu_set_t original{};

  void SetUp() override {
    original = affinity(0);
    if (CPU_COUNT(&original) < 2) GTEST_SKIP() << "this test needs two CPUs";
    pid = driver.launch(kProgram, {"1", "3", test::allowed_cpus()});
    ASSERT_NE(pid, 0);
    // Other programs may make some steps slow.
    for (int step = 0; step < 20'000 && !driver.engine.shares_cpu(); ++step) {
      driver.resume_all(ResumeKind::kStep);
      ASSERT_TRUE(driver.await());
    }
    ASSERT_TRUE(driver.engine.shares_cpu());
    ASSERT_EQ(affinity_count(pid), 1);
  }

  static cpu_set_t affinity(pid_t tid) {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(::sched_getaffinity(tid, sizeof set, &set), 0);
    return set;
  }
  static int affinity_count(pid_t tid) {
    const cpu_set_t set = affinity(tid);
    return CPU_COUNT(&set);
  }
  void expect_original() const {
    for (const pid_t tid : {0, pid}) {
      const cpu_set_t now = affinity(tid);
      EXPECT_TRUE(CPU_EQUAL(&now, &original)) << tid;
    }
  }
};

TEST_F(SharedCpuOfSteps, IsGivenBackAlthoughTheClientDoesNothingMore) {
  while (driver.engine.shares_cpu()) {
    pollfd event{driver.engine.event_fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&event, 1, 20'000), 1);
    driver.engine.pump(-1);
  }
  expect_original();
}

TEST_F(SharedCpuOfSteps, IsGivenBackBeforeTheProgramIsLetGo) {
  // The program must not see how it was stepped.
  ASSERT_TRUE(driver.engine.let_go({pid, pid}, [&] { expect_original(); }));
  EXPECT_FALSE(driver.engine.shares_cpu());
  const auto end = driver.await();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_code, 0);
}

std::string name_of(const testing::TestParamInfo<Recorded>& parameter) {
  switch (parameter.param) {
    case Recorded::kNot:
      return "None";
    case Recorded::kNotButCaught:
      return "NoneWithACatch";
    case Recorded::kStep:
      return "Step";
    case Recorded::kCache:
      return "Cache";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Sources, SharedCpu,
                         testing::Values(Recorded::kNot, Recorded::kNotButCaught, Recorded::kStep,
                                         Recorded::kCache),
                         name_of);

}  // namespace
}  // namespace backtrail::tracee
