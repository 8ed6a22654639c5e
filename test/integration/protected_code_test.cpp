// SPDX-License-Identifier: Apache-2.0
// Code in writable memory that runs for long without a write, and is then written.

#include <algorithm>
#include <bit>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "cache_run.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

/// Returns the largest number of write-protected pages at any stop.
std::size_t run_protected(std::vector<std::string> how, int stops) {
  std::size_t quiet = 0;
  const Outcome outcome = run_recorded({.program = "quiet",
                                        .arguments = std::move(how),
                                        .stops = stops,
                                        .threads = true,
                                        .collects = false,
                                        .at_stop = [&](EngineDriver&, Thread& thread) {
                                          const auto& space = thread.process().cache_space;
                                          if (space)
                                            quiet =
                                                std::max(quiet, space->protection().pages().size());
                                        }});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  return quiet;
}

class ProtectedCode : public testing::TestWithParam<const char*> {};

TEST_P(ProtectedCode, MayBeWrittenLikeAnyOther) {
  EXPECT_GT(run_protected({GetParam()}, 0), 0U);
}

TEST_P(ProtectedCode, MayBeWrittenLikeAnyOtherWhileItIsInterrupted) {
  (void)run_protected({GetParam()}, 100);
}

TEST_P(ProtectedCode, MayBeWrittenLikeAnyOtherWhereItIsAFiles) {
  EXPECT_GT(run_protected({GetParam(), "file"}, 0), 0U);
}

INSTANTIATE_TEST_SUITE_P(Ways, ProtectedCode,
                         testing::Values("store", "locked", "string", "border", "bulk", "kernel",
                                         "child", "thread", "signals", "mappings", "reopened"),
                         [](const auto& test) { return std::string{test.param}; });

/// A file's page is write-protected again each time its last open descriptor is closed.
TEST(ProtectedCode, IsProtectedAgainWheneverItsFileIsLetGo) {
  std::vector<std::size_t> quiet;
  const Outcome outcome =
      run_recorded({.program = "quiet",
                    .arguments = {"reopened"},
                    .collects = false,
                    .at_stop = [&](EngineDriver& driver, Thread& thread) {
                      const auto pending = thread.control().last_stop;
                      (void)driver;
                      if (pending.signal != SIGUSR1) return;
                      const auto& space = thread.process().cache_space;
                      quiet.push_back(space ? space->protection().pages().size() : 0);
                    }});
  EXPECT_TRUE(outcome.exited_with(0)) << outcome.end.exit_code << " " << outcome.statistics;
  EXPECT_EQ(quiet, std::vector<std::size_t>(6, 1));
}

/// Pages that become writable again would count against the limit anew, and the kernel might
/// refuse.
TEST(ProtectedPages, AreNoneWhereDataIsLimited) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers have terabytes of data themselves";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit limited{std::min<rlim_t>(1ULL << 40, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limited), 0);
  EXPECT_EQ(run_protected({"store"}, 0), 0U);
  EXPECT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
}

std::vector<MapEntry> anonymous_code(pid_t pid) {
  auto maps = ProcFs{}.maps(pid);
  if (!maps) return {};
  std::erase_if(*maps, [](const MapEntry& map) {
    return map.inode != 0 || !map.execute || !map.path.empty();
  });
  return *maps;
}

TEST(ProtectedMemory, IsTheProgramsAgainWhenRecordingEnds) {
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("quiet", {"store"});
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  const auto event = driver.run();
  ASSERT_TRUE(event);
  ASSERT_EQ(event->kind, StopKind::kSignal);
  const auto space = driver.engine.find(id)->process().cache_space;
  ASSERT_TRUE(space);
  ASSERT_GT(space->protection().pages().size(), 0U);
  const auto writable = [](const MapEntry& map) { return map.write; };
  const auto quiet = anonymous_code(pid);
  EXPECT_FALSE(std::all_of(quiet.begin(), quiet.end(), writable));
  ASSERT_TRUE(driver.engine.disable_trace(id));
  const auto after = anonymous_code(pid);
  EXPECT_FALSE(after.empty());
  EXPECT_TRUE(std::all_of(after.begin(), after.end(), writable));
  // The program's only events are SIGUSR1.
  for (;;) {
    const auto next = driver.run();
    ASSERT_TRUE(next);
    if (next->kind == StopKind::kProcessExited) {
      EXPECT_EQ(next->exit_code, 0);
      break;
    }
    ASSERT_EQ(next->kind, StopKind::kSignal);
    ASSERT_EQ(next->signal, SIGUSR1);
  }
}

void expect_as_made(void* memory, std::size_t pages) {
  ASSERT_NE(memory, MAP_FAILED);
  const TraceeAddr begin{std::bit_cast<std::uint64_t>(memory)};
  const auto range_at = [&](const cache::ProtectedPages& quiet, TraceeAddr at) {
    const auto maps = ProcFs{}.maps(::getpid());
    if (!maps) return cache::ExecutableMap::Range{};
    const auto map = cache::ExecutableMap::from(*maps, TraceeAddr{}, quiet,
                                                [](const MapEntry&) { return false; });
    const auto* range = map.find(at);
    return range != nullptr ? *range : cache::ExecutableMap::Range{};
  };
  const auto made = range_at({}, begin);
  EXPECT_TRUE(made.may_change);
  EXPECT_TRUE(made.own);
  cache::ProtectedPages quiet;
  for (const std::size_t page : {std::size_t{1}, std::size_t{3}}) {
    const TraceeAddr at = begin + page * kPageBytes;
    ASSERT_EQ(::mprotect(std::bit_cast<void*>(at.value()), kPageBytes, PROT_READ | PROT_EXEC), 0);
    quiet.add({at, at + kPageBytes});
  }
  EXPECT_FALSE(range_at({}, begin + kPageBytes).may_change);
  for (std::size_t page = 0; page < pages; ++page) {
    const auto range = range_at(quiet, begin + page * kPageBytes);
    EXPECT_EQ(range.begin, made.begin) << page;
    EXPECT_EQ(range.end, made.end) << page;
    EXPECT_TRUE(range.may_change) << page;
    EXPECT_TRUE(range.own) << page;
    EXPECT_EQ(range.offset, made.offset) << page;
  }
  ::munmap(memory, pages * kPageBytes);
}

TEST(ProtectedMemory, LooksAsTheProgramMadeIt) {
  constexpr std::size_t kPages = 5;
  constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  expect_as_made(::mmap(nullptr, kPages * kPageBytes, kAll, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                 kPages);
  const UniqueFd file{::memfd_create("code", 0)};
  ASSERT_EQ(::ftruncate(file.get(), 8 * kPageBytes), 0);
  expect_as_made(
      ::mmap(nullptr, kPages * kPageBytes, kAll, MAP_PRIVATE, file.get(), 2 * kPageBytes), kPages);
}

TEST(ProtectedPages, AreTakenWhenTheyRunOftenAndStayTheSame) {
  cache::ProtectedPages pages;
  std::uint64_t content = 1;
  const auto take = [&](int times) {
    for (int i = 0; i < times; ++i) pages.ran(TraceeAddr{0x5123});
    return pages.take_due([&](TraceeAddr) { return content; });
  };
  EXPECT_TRUE(take(1000).empty());  // seen for the first time
  EXPECT_TRUE(take(1).empty());     // too seldom
  content = 2;
  EXPECT_TRUE(take(1000).empty());  // changed since the last look
  EXPECT_EQ(take(1000), std::vector{TraceeAddr{0x5000}});
  pages.add({TraceeAddr{0x5000}, TraceeAddr{0x6000}});
  EXPECT_TRUE(pages.contains(TraceeAddr{0x5fff}));
  EXPECT_FALSE(pages.contains(TraceeAddr{0x6000}));
  EXPECT_TRUE(take(1000).empty());
  EXPECT_TRUE(take(0).empty());
}

TEST(ProtectedPages, ThatAreWrittenOftenAreLeftAloneForLonger) {
  cache::ProtectedPages pages;
  const TraceeAddr page{0x5000};
  const auto turns_until_due = [&] {
    for (int turn = 0; turn < 1000; ++turn) {
      for (int i = 0; i < 10; ++i) pages.ran(page);
      if (!pages.take_due([](TraceeAddr) { return 1; }).empty()) return turn;
    }
    return -1;
  };
  const auto writes_until_left = [&] {
    int writes = 1;
    while (!pages.written(page)) ++writes;
    return writes;
  };
  const int first = turns_until_due();
  pages.add({page, page + kPageBytes});
  const int few = writes_until_left();
  EXPECT_GT(few, 1);
  pages.remove({page, page + kPageBytes});
  EXPECT_GT(turns_until_due(), first);
  // A page that runs much may be written more often.
  pages.add({page, page + kPageBytes});
  for (int i = 0; i < 100000; ++i) pages.ran(page);
  EXPECT_GT(writes_until_left(), few);
}

TEST(ProtectedPages, AreToldAsRanges) {
  cache::ProtectedPages pages;
  pages.add({TraceeAddr{0x5000}, TraceeAddr{0x7000}});
  pages.add({TraceeAddr{0x9000}, TraceeAddr{0xa000}});
  using Ranges = std::vector<cache::ProtectedPages::Range>;
  EXPECT_EQ(
      pages.within(TraceeAddr{}, TraceeAddr{0x10000}),
      (Ranges{{TraceeAddr{0x5000}, TraceeAddr{0x7000}}, {TraceeAddr{0x9000}, TraceeAddr{0xa000}}}));
  EXPECT_EQ(pages.within(TraceeAddr{0x6800}, TraceeAddr{0x9000}),
            (Ranges{{TraceeAddr{0x6000}, TraceeAddr{0x7000}}}));
  pages.remove({TraceeAddr{0x6000}, TraceeAddr{0x7000}});
  EXPECT_EQ(pages.size(), 2U);
  EXPECT_FALSE(pages.contains(TraceeAddr{0x6000}));
  EXPECT_TRUE(pages.within(TraceeAddr{}, TraceeAddr{}).empty());
}

}  // namespace
}  // namespace backtrail::tracee
