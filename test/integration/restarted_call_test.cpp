// SPDX-License-Identifier: Apache-2.0
// Recording starts while the program waits in a system call, which a signal then interrupts.
#include <algorithm>
#include <csignal>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "trace_judge.hpp"

namespace backtrail::tracee {
namespace {

class RestartedCall : public testing::TestWithParam<SourceKind> {
 protected:
  /// Launches the program and stops it in read().
  void SetUp() override {
    pid_ = driver_.launch("blocked");
    driver_.resume_all();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{240};
    while (!ProcFs{}.read(pid_, "syscall").value_or("").starts_with("0 ")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it does not wait";
      driver_.engine.pump(-1);
      std::this_thread::yield();
    }
    driver_.engine.interrupt();
    ASSERT_TRUE(driver_.await());
    ASSERT_TRUE(thread().syscall_will_restart());
  }

  [[nodiscard]] ThreadId id() const { return {pid_, pid_}; }
  Thread& thread() { return *driver_.engine.find(id()); }

  EngineDriver driver_{GetParam()};
  pid_t pid_ = 0;
};

TEST_P(RestartedCall, IsWhereRecordingBegins) {
  ASSERT_TRUE(driver_.engine.enable_trace(id(), {TraceFormat::kBts, 1U << 20U}));
  const TraceeAddr behind = thread().pc().value_or(TraceeAddr{});
  TraceJudge judge;
  JudgedTrace judged{thread().process(), judge};
  thread().trace()->hub().add(judged, behind - 2);
  const BreakpointSpec spec{.kind = BreakpointKind::kSoftware,
                            .address = symbol_of("blocked", "read_done")};
  ASSERT_TRUE(driver_.engine.insert(pid_, spec));
  driver_.engine.set_pass_signals({SIGUSR1});
  ::syscall(SYS_tgkill, pid_, pid_, SIGUSR1);
  const auto event = driver_.run();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, StopKind::kSoftwareBreakpoint);

  thread().trace()->flush();
  EXPECT_EQ(judge.objections(), "");
  // The trace begins at the interrupted call; the handler runs before the call is restarted.
  const decoder::RecordRing& records = thread().trace()->bts()->records();
  EXPECT_EQ(records.at(records.begin()).to, behind - 2);
  const auto blocks = thread().trace()->bts()->read_all(spec.address);
  ASSERT_GT(blocks.size(), 3U);
  EXPECT_EQ(blocks.back().begin, symbol_of("blocked", "wake"));
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), decoder::kGapBlock), 0);
  EXPECT_TRUE(driver_.engine.kill(pid_));
}

INSTANTIATE_TEST_SUITE_P(Sources, RestartedCall,
                         testing::Values(SourceKind::kStep, SourceKind::kCache),
                         [](const auto& test) { return std::string{to_string(test.param)}; });

}  // namespace
}  // namespace backtrail::tracee
