// SPDX-License-Identifier: Apache-2.0
// Streams every record of threads that run: none is duplicated, none is missing.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "cache_run.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{240};

/// A program whose records are read again and again while it runs.
class LiveRun {
 public:
  LiveRun(const std::string& program, const std::string& from, std::uint64_t history_bytes)
      : pid_{driver_.launch(program)}, id_{pid_, pid_} {
    const BreakpointSpec begin{.address = symbol_of(program, from)};
    EXPECT_TRUE(driver_.engine.insert(pid_, begin));
    EXPECT_TRUE(driver_.run());
    EXPECT_TRUE(driver_.engine.remove(pid_, begin));
    EXPECT_TRUE(driver_.engine.enable_trace(id_, {TraceFormat::kBts, history_bytes}));
    Thread* thread = driver_.engine.find(id_);
    if (thread == nullptr || !thread->trace()) return;
    if (const auto pc = thread->next_pc()) thread->trace()->hub().add(heard_, *pc);
    EXPECT_TRUE(driver_.engine.stream_trace(id_));
    EXPECT_TRUE(thread->trace()->source().streams());
  }

  /// Runs until the program ends or `records` were read while it ran; interrupts it `stops` times.
  /// @return The event that ended the process; nullopt if it still runs.
  std::optional<StopEvent> run(std::uint64_t records, int stops) {
    driver_.resume_all();
    const auto deadline = Clock::now() + kPatience;
    while (Clock::now() < deadline && running_ < records) {
      driver_.engine.pump(news_.get());
      if (auto event = driver_.engine.take_event()) {
        if (event->kind == StopKind::kProcessExited) return event;
        driver_.resume_all();
      }
      Thread* thread = driver_.engine.find(id_);
      if (thread == nullptr || !thread->trace()) continue;
      const std::size_t before = heard_.all.size();
      const bool stopped = thread->stopped();
      thread->trace()->flush();
      if (!stopped) running_ += heard_.all.size() - before;
      if (stops > 0 && heard_.all.size() != before) {
        --stops;
        driver_.engine.interrupt();
      }
    }
    return std::nullopt;
  }
  void kill() { EXPECT_TRUE(driver_.engine.kill(pid_)); }
  [[nodiscard]] const std::vector<decoder::Record>& heard() const { return heard_.all; }
  [[nodiscard]] std::uint64_t heard_running() const { return running_; }

 private:
  Collector heard_;
  UniqueFd news_{::eventfd(1, EFD_CLOEXEC)};  ///< Makes pump() return at once.
  EngineDriver driver_{SourceKind::kCache};
  pid_t pid_;
  ThreadId id_;
  std::uint64_t running_ = 0;
};

struct Case {
  const char* name;
  std::uint64_t history_bytes;  ///< Larger or smaller than a full log: with and without log
                                ///< segments of its own.
  int stops;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class CacheLive : public testing::TestWithParam<Case> {};

TEST_P(CacheLive, EqualsWhatIsTakenAtStopsAlone) {
  static const Outcome quiet = run_recorded({.program = "habits", .from = "main"});
  ASSERT_TRUE(quiet.exited_with(0));
  LiveRun live{"habits", "main", GetParam().history_bytes};
  const auto end = live.run(~0ULL, GetParam().stops);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_GT(live.heard_running(), 0U);
  ASSERT_EQ(live.heard().size(), quiet.records().size());
  const auto [one, other] =
      std::mismatch(live.heard().begin(), live.heard().end(), quiet.records().begin());
  EXPECT_EQ(one, live.heard().end()) << "record " << one - live.heard().begin();
}

INSTANTIATE_TEST_SUITE_P(Histories, CacheLive,
                         testing::Values(Case{"Short", 4096, 0}, Case{"Long", 64ULL << 20, 0},
                                         Case{"ShortInterrupted", 4096, 300},
                                         Case{"LongInterrupted", 64ULL << 20, 300}),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST(CacheLiveLoop, IsHeardWithoutStopsAndFullLogs) {
  LiveRun live{"slow_loop", "main", 1ULL << 20};
  EXPECT_FALSE(live.run(100, 0));
  EXPECT_GE(live.heard_running(), 100U);
  const TraceeAddr turn = symbol_of("slow_loop", "turn");
  const auto calls =
      std::count_if(live.heard().begin(), live.heard().end(),
                    [=](const decoder::Record& record) { return record.to == turn; });
  EXPECT_GT(calls, 10);
  live.kill();
}

}  // namespace
}  // namespace backtrail::tracee
