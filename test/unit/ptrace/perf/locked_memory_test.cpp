// SPDX-License-Identifier: Apache-2.0
// Threads that share the memory that a user may lock.

#include "ptrace/perf/locked_memory.hpp"

#include <bit>

#include <sys/resource.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "test/unit/ptrace/fake_proc.hpp"
#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {
namespace {

constexpr std::size_t kThreads = 1000;
/// Limit of an unprivileged user with 8 MiB and two CPUs.
constexpr std::uint64_t kBudget = (8U << 20U) + 2 * 516 * 1024;

/// Many threads on one kernel, each with a recorder of one kind.
class Crowd {
 public:
  explicit Crowd(std::uint64_t budget) {
    kernel.locked_budget = budget;
    kernel.waitable = false;
    kernel.devices["intel_pt/type"] = "9";
  }
  Result<void> add_bts(const RecorderOptions& options) {
    return keep(bts, BtsRecorder::open(kernel, tid(), true, options, insns, sink));
  }
  Result<void> add_pt(const RecorderOptions& options) {
    return keep(pt, PtRecorder::open(kernel, tid(), options, history));
  }
  Result<void> add_lbr(const RecorderOptions& options) {
    return keep(lbr, LbrRecorder::open(kernel, tid(), options.size_bytes, insns, sink));
  }

  SimulatedPerf kernel;
  NopCode code;
  decoder::InsnCache insns{code};
  Sink sink;
  decoder::PtRawHistory history{4096};
  std::vector<std::unique_ptr<BtsRecorder>> bts;
  std::vector<std::unique_ptr<PtRecorder>> pt;
  std::vector<std::unique_ptr<LbrRecorder>> lbr;

 private:
  template <typename List, typename Opened>
  static Result<void> keep(List& list, Opened opened) {
    if (!opened) return fail(opened.error());
    list.push_back(std::move(*opened));
    return {};
  }
  pid_t tid() { return ++last_tid_; }
  pid_t last_tid_ = kTid;
};

RecorderOptions shared(const Crowd& crowd, BufferMode mode, std::size_t threads) {
  constexpr std::uint64_t kWanted = 64U << 10U;
  const std::uint64_t share = locked_memory_share(crowd.kernel.locked_budget, threads);
  return {mode, std::min(kWanted, std::bit_floor(share)), false};
}

TEST(LockedMemory, AThousandThreadsGetAHistoryEach) {
  Crowd crowd{kBudget};
  for (std::size_t i = 0; i < kThreads; ++i)
    ASSERT_TRUE(crowd.add_bts(shared(crowd, BufferMode::kHistory, kThreads))) << i;
  EXPECT_EQ(crowd.kernel.open_events(), kThreads);
  EXPECT_LE(crowd.kernel.locked(), kBudget);
  for (const auto& recorder : crowd.bts) ASSERT_EQ(recorder->event().data().size(), kPageBytes);
  // The last recorder records like the first.
  for (BtsRecorder* recorder : {crowd.bts.front().get(), crowd.bts.back().get()}) {
    crowd.sink.records.clear();
    ASSERT_TRUE(recorder->start(TraceeAddr{1}));
    crowd.kernel.by_fd(recorder->event().fd()).batch(run_of(1, 2560));
    recorder->drain(TraceeAddr{2561});
    EXPECT_EQ(crowd.sink.branches(), numbers(2391, 170));
    EXPECT_EQ(crowd.sink.gaps(), (Texts{"2390"}));
  }
  crowd.bts.clear();
  EXPECT_EQ(crowd.kernel.locked(), 0U);
  EXPECT_EQ(crowd.kernel.open_events(), 0U);
}

TEST(LockedMemory, AThousandThreadsGetStacksEach) {
  Crowd crowd{kBudget};
  for (std::size_t i = 0; i < kThreads; ++i)
    ASSERT_TRUE(crowd.add_lbr(shared(crowd, BufferMode::kStream, kThreads))) << i;
  EXPECT_LE(crowd.kernel.locked(), kBudget);
}

TEST(LockedMemory, WhoFindsNoneIsToldAndFindsSomeWhenOthersAreGone) {
  Crowd crowd{kBudget};
  std::optional<Error> said;
  while (!said && crowd.pt.size() < kThreads) {
    const auto added = crowd.add_pt(shared(crowd, BufferMode::kStream, kThreads));
    if (!added) said = added.error();
  }
  ASSERT_TRUE(said);
  // Less than three pages are left, the least for a header, a ring and an area.
  EXPECT_GT(crowd.kernel.locked() + 3 * kPageBytes, kBudget);
  EXPECT_GT(crowd.pt.size(), 350U);
  EXPECT_EQ(said->code.value(), EPERM);
  EXPECT_NE(explain_perf_error(*said).find("ulimit -l"), std::string::npos);
  EXPECT_EQ(crowd.kernel.open_events(), crowd.pt.size());
  // The other threads go on, and memory that one returns becomes available.
  PtRecorder& last = *crowd.pt.back();
  ASSERT_TRUE(last.start());
  crowd.kernel.by_fd(last.event().fd()).aux_bytes(psb_and(3));
  last.drain();
  EXPECT_EQ(crowd.history.read_all(), psb_and(3));
  crowd.pt.erase(crowd.pt.begin());
  EXPECT_TRUE(crowd.add_pt(shared(crowd, BufferMode::kStream, kThreads)));
}

TEST(LockedMemory, ThreadsThatComeOneByOneLeaveSomeToTheNext) {
  Crowd crowd{kBudget};
  constexpr std::size_t kMany = 64;
  for (std::size_t i = 1; i <= kMany; ++i)
    ASSERT_TRUE(crowd.add_bts(shared(crowd, BufferMode::kHistory, i))) << i;
  EXPECT_EQ(crowd.bts.front()->event().data().size(), 16 * kPageBytes);
  EXPECT_EQ(crowd.bts.back()->event().data().size(), 16 * kPageBytes);
  // Threads that take 4 MiB each without regard for others soon use it up.
  Crowd greedy{kBudget};
  std::size_t got = 0;
  while (got < kMany && greedy.add_bts({BufferMode::kHistory, 4U << 20U, false})) ++got;
  EXPECT_LT(got, 16U);
}

TEST(LockedMemory, OfAThreadIsAShareOfHalfTheLimit) {
  EXPECT_EQ(locked_memory_share(std::nullopt, 1000), ~std::uint64_t{0});
  EXPECT_EQ(locked_memory_share(8U << 20U, 1), 4U << 20U);
  EXPECT_EQ(locked_memory_share(8U << 20U, 0), 4U << 20U);
  EXPECT_EQ(locked_memory_share(8U << 20U, 16), 256U << 10U);
  EXPECT_EQ(locked_memory_share(8U << 20U, 1'000'000), kPageBytes);
  EXPECT_EQ(locked_memory_share(0, 1), kPageBytes);
}

TEST(LockedMemory, IsLimitedForPlainUsersOnly) {
  FakeProc proc;
  proc.add("sys/kernel/perf_event_paranoid", "2\n");
  proc.add("sys/kernel/perf_event_mlock_kb", "516\n");
  proc.add("self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit small{std::min<rlim_t>(before.rlim_max, 64 * 1024), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  const auto cpus = static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_EQ(locked_memory_limit(proc.root()), small.rlim_cur + 516 * 1024 * cpus);
  proc.add("sys/kernel/perf_event_mlock_kb", "1000\n");
  EXPECT_EQ(locked_memory_limit(proc.root()), small.rlim_cur + 1000 * 1024 * cpus);
  proc.add("self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  EXPECT_EQ(locked_memory_limit(proc.root()), std::nullopt);
  proc.add("self/status", "Name:\tx\nCapEff:\t000001ffffffbfff\n");
  EXPECT_NE(locked_memory_limit(proc.root()), std::nullopt);
  proc.add("sys/kernel/perf_event_paranoid", "-1\n");
  EXPECT_EQ(locked_memory_limit(proc.root()), std::nullopt);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

}  // namespace
}  // namespace backtrail::tracee::simulated
