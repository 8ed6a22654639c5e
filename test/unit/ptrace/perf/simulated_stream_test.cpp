// SPDX-License-Identifier: Apache-2.0
// Buffers that are read while their thread runs, so that no record is overwritten or lost; and
// events of a recorder that consist of several kernel events.

#include <array>
#include <random>

#include <poll.h>

#include "arch/base/page.hpp"
#include "decoder/bts/branch_store.hpp"
#include "ptrace/perf/bts_trial.hpp"
#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {
namespace {

/// Returns true if the kernel would wake the reader now.
bool woken(SimulatedPerf& kernel, const PerfEvent& event) {
  const auto events = kernel.poll(event.fd());
  return events && (*events & POLLIN) != 0;
}

class Sizes : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Streams, Sizes, testing::Values(4096, 16384, 65536, 1U << 20U));

TEST_P(Sizes, BatchesOfTheRingAllArriveIfEachWakeIsFollowed) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kStream, GetParam()));
  std::mt19937 random{7};
  std::uint64_t next = 1;
  std::uint64_t wakes = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t count = 1 + random() % 2560;
    t.event().batch(run_of(next, count));
    next += count;
    if (!woken(t.kernel, t.recorder->event())) continue;
    ++wakes;
    t.recorder->drain();
  }
  t.drain(next);
  t.expect(numbers(1, next - 1), {});
  EXPECT_GT(wakes, 3U);
  EXPECT_LT(wakes, 300U);
}

TEST_P(Sizes, BytesOfTheAreaAllArriveIfEachWakeIsFollowed) {
  Bts t;
  ASSERT_TRUE(t.open_aux(BufferMode::kStream, GetParam()));
  std::mt19937 random{8};
  std::uint64_t next = 1;
  for (int i = 0; i < 120; ++i) {
    // The amount at a context switch, or as much as the hardware writes before it interrupts.
    const std::uint64_t count = 1 + random() % (GetParam() / 4 / 24);
    t.event().aux_pairs(run_of(next, count));
    next += count;
    if (woken(t.kernel, t.recorder->event())) t.recorder->drain();
  }
  t.drain(next);
  t.expect(numbers(1, next - 1), {});
}

TEST_P(Sizes, PacketsAllArriveIfEachWakeIsFollowed) {
  Pt t;
  t.history = decoder::PtRawHistory{std::uint64_t{1} << 30U};
  ASSERT_TRUE(t.open(BufferMode::kStream, GetParam()));
  std::mt19937 random{9};
  std::vector<std::uint8_t> expected;
  for (int i = 0; i < 200; ++i) {
    const auto bytes = psb_and(random() % (GetParam() / 4 - 18));
    expected.insert(expected.end(), bytes.begin(), bytes.end());
    t.event().aux_bytes(bytes);
    if (woken(t.kernel, t.recorder->event())) t.recorder->drain();
  }
  t.recorder->drain();
  EXPECT_EQ(t.history.read_all(), expected);
}

TEST(Streams, WatermarksFollowWhatIsGranted) {
  Bts t;
  t.kernel.largest_ring = 65 * kPageBytes;
  ASSERT_TRUE(t.open(BufferMode::kStream, 4U << 20U));
  EXPECT_EQ(t.recorder->event().data().size(), 64 * 4096U);
  EXPECT_EQ(t.event().attr.wakeup_watermark, 16 * 4096U);
  EXPECT_EQ(t.kernel.open_events(), 1U);
  Pt pt;
  pt.kernel.largest_area = 8 * kPageBytes;
  pt.kernel.area_errno = ENOMEM;
  ASSERT_TRUE(pt.open(BufferMode::kStream, 4U << 20U));
  EXPECT_EQ(pt.event().attr.aux_watermark, 2 * 4096U);
}

TEST(Streams, AreToldHowFullTheirBuffersAre) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kStream));
  EXPECT_EQ(t.recorder->percent_full(), 0U);
  t.event().batch(run_of(1, 2560));  // 60 of 128 KiB
  EXPECT_EQ(t.recorder->percent_full(), 46U);
  t.recorder->drain();
  EXPECT_EQ(t.recorder->percent_full(), 0U);
}

TEST(Streams, SayNothingOfAThreadThatWaitsForACpu) {
  Bts t;
  ASSERT_TRUE(t.open_aux());
  Pt pt;
  ASSERT_TRUE(pt.open());
  for (int i = 0; i < 3; ++i) {
    t.recorder->drain();
    pt.recorder->drain(false);
  }
  t.event().aux_pairs(run_of(1, 3));
  pt.event().aux_bytes(psb_and(3));
  t.drain(4);
  pt.recorder->drain();
  t.expect(numbers(1, 3), {});
  EXPECT_EQ(ovfs(pt.history.read_all()), 0U);
  // If the thread ran but no record came, that is found at the stop.
  t.recorder->resumed();
  t.event().enabled = false;
  t.recorder->drain();
  EXPECT_TRUE(t.sink.gaps().empty());
  t.drain(9);
  t.expect(numbers(1, 3), {"?"});
}

TEST(Streams, BeginWhereAHistoryWasWithoutALoss) {
  for (const bool by_area : {false, true}) {
    Bts t;
    ASSERT_TRUE(by_area ? t.open_aux(BufferMode::kHistory) : t.open(BufferMode::kHistory));
    const auto write = [&](const Pairs& pairs) {
      if (!by_area) return t.event().batch(pairs);
      if (t.event().snapshot) return t.event().snapshot_pairs(pairs);
      t.event().aux_pairs(pairs);
    };
    write(run_of(1, 50));
    t.drain(51);
    ASSERT_TRUE(t.recorder->stream());
    EXPECT_EQ(t.recorder->event().mode(), BufferMode::kStream);
    EXPECT_EQ(t.kernel.open_events(), 1U);
    EXPECT_TRUE(t.event().enabled);
    write(run_of(51, 50));
    t.drain(101);
    t.expect(numbers(1, 100), {});
    ASSERT_TRUE(t.recorder->stream());  // calling it twice has no further effect
    EXPECT_EQ(t.kernel.opened.size(), 2U);
  }
}

TEST(Streams, BeginToCountAnew) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kHistory));
  t.event().write(RecordType::kLost, 0, {1, 3});
  t.event().batch(run_of(1, 5));
  t.event().time_enabled += 5000;
  t.drain(6);
  const Texts before = t.sink.gaps();
  ASSERT_TRUE(t.recorder->stream(1U << 20U));
  EXPECT_EQ(t.recorder->event().data().size(), 1U << 20U);
  t.event().batch(run_of(6, 5));
  t.drain(11);
  EXPECT_EQ(t.sink.gaps(), before);
  t.event().write(RecordType::kLost, 0, {1, 2});
  t.event().batch(run_of(11, 5));
  t.drain(16);
  ASSERT_EQ(t.sink.gaps().size(), before.size() + 1);
  EXPECT_EQ(t.sink.gaps().back(), "2 batches");
}

TEST(Streams, AloneHaveMarks) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kHistory, 4096, true));
  EXPECT_EQ(t.event().attr.context_switch, 0U);
  EXPECT_EQ(t.event().attr.sample_id_all, 0U);
  const std::uint64_t fit = t.event().ring_bytes() / 24;
  t.event().batch(run_of(1, fit + 1));
  t.drain(fit + 2);
  t.expect(numbers(2, fit), {"1"});
}

TEST(Streams, LeaveTheHistoryWhereTheyCannotBeHad) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kHistory));
  t.event().batch(run_of(1, 5));
  t.drain(6);
  t.kernel.open_rule = [](const perf_event_attr& a) { return a.wakeup_watermark != 0 ? EPERM : 0; };
  const auto said = t.recorder->stream();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code.value(), EPERM);
  EXPECT_EQ(t.recorder->event().mode(), BufferMode::kHistory);
  t.event().batch(run_of(6, 5));
  t.drain(11);
  t.expect(numbers(1, 10), {});
  // Another user took the unit meanwhile.
  t.kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_FALSE(t.recorder->stream());
  EXPECT_TRUE(t.recorder->ended());
  t.drain(12);
  EXPECT_FALSE(t.recorder->statistics().empty());
  EXPECT_TRUE(t.recorder->stream());  // There is nothing left to change.

  Pt pt;
  ASSERT_TRUE(pt.open(BufferMode::kHistory));
  pt.kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_FALSE(pt.recorder->stream());
  EXPECT_TRUE(pt.recorder->ended());
}

/// Tries BTS with `turns` recorded iterations of the known loop, or with records of another place.
BtsTrial tried(SimulatedPerf& kernel, std::uint64_t turns, bool elsewhere = false) {
  const KnownLoop loop = known_loop();
  kernel.on_disable = [=](test::SimulatedEvent& event) {
    const std::uint64_t moved = elsewhere ? 4 : 0;
    Pairs pairs{{5, 6}};
    pairs.resize(turns + 1, {loop.from.value() + moved, loop.to.value()});
    pairs.emplace_back(7, 8);
    event.batch(pairs);
  };
  return try_bts(kernel);
}

TEST(BtsTrials, TellBtsFromASamplerByAKnownLoop) {
  const std::uint64_t turns = known_loop().turns;
  EXPECT_LT(known_loop().to, known_loop().from);
  SimulatedPerf kernel;
  EXPECT_EQ(tried(kernel, turns), BtsTrial::kBts);
  EXPECT_EQ(kernel.opened.back().sample_period, 1U);
  EXPECT_EQ(kernel.open_events(), 0U);
  EXPECT_EQ(tried(kernel, turns / 100), BtsTrial::kSampler);
  EXPECT_EQ(tried(kernel, turns - 1), BtsTrial::kSampler);
  EXPECT_EQ(tried(kernel, turns, true), BtsTrial::kSampler);
  EXPECT_EQ(tried(kernel, 0), BtsTrial::kSampler);
  kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_EQ(tried(kernel, turns), BtsTrial::kRefused);
}

TEST(BtsTrials, SamplesThatDoNotJoinAreNoBts) {
  Bts t;
  ASSERT_TRUE(t.open());
  Pairs apart;
  for (std::uint64_t i = 100; i != 0; --i) apart.emplace_back(1000 * i, 1000 * i + 1);
  t.event().batch(apart);
  t.drain(1);
  EXPECT_TRUE(t.recorder->not_bts());
  const std::size_t before = t.sink.branches().size();
  t.event().batch(apart);
  t.drain(1);
  EXPECT_EQ(t.sink.branches().size(), before);
  EXPECT_EQ(t.sink.gaps().back(), "unrecorded");
  // A storm of signals differs: most branches join.
  Bts storm;
  ASSERT_TRUE(storm.open());
  for (std::uint64_t i = 100; i != 0; --i) storm.event().batch(run_of(1000 * i, 3));
  storm.drain(1003);
  EXPECT_FALSE(storm.recorder->not_bts());
}

TEST(Levels, WhoSeesTheKernelSeesEverythingAndOthersWhatTheySaw) {
  const Pairs before = run_of(1, 3);
  const Pairs through{{4, kKernel}, {kKernel + 1, kKernel + 9}, {kKernel + 9, 4}, {4, 5}, {5, 6}};
  Bts alone;
  ASSERT_TRUE(alone.open_aux());
  Bts t;
  Sink whole;
  ASSERT_TRUE(t.open_aux());
  for (Bts* each : {&alone, &t}) {
    each->event().aux_pairs(before);
    each->drain(4);
  }
  ASSERT_TRUE(t.recorder->see_kernel(whole));
  EXPECT_EQ(t.kernel.opened.front().exclude_kernel, 1U);
  EXPECT_EQ(t.event().attr.exclude_kernel, 0U);
  ASSERT_TRUE(t.recorder->see_kernel(whole));  // calling it twice has no further effect
  for (Bts* each : {&alone, &t}) {
    each->event().aux_pairs(through);
    each->drain(6);
  }
  EXPECT_EQ(t.sink.records, alone.sink.records);
  EXPECT_EQ(t.sink.order, alone.sink.order);
  EXPECT_EQ(whole.branches(), (std::vector<std::uint64_t>{4, kKernel + 1, kKernel + 9, 4, 5}));
  EXPECT_EQ(whole.records.front().reason, GapReason::kStart);
  t.event().aux_pairs(run_of(6, 1), decoder::perf::kAuxTruncated);
  t.drain(9);
  EXPECT_EQ(whole.gaps(), (Texts{"?"}));
  EXPECT_EQ(t.sink.gaps(), (Texts{"?"}));
}

TEST(Levels, AStoreOfAProcessHasThoseOfEachThread) {
  decoder::BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 240, .level = decoder::StoreLevel::kKernel}));
  std::array<Bts, 2> threads;
  for (std::uint32_t i = 0; i < 2; ++i) {
    Bts& thread = threads[i];
    ASSERT_TRUE(thread.open_aux());
    ASSERT_TRUE(thread.recorder->see_kernel(store.listen_to_whole(i + 1)));
    const std::uint64_t at = 4 + 10 * i;
    thread.event().aux_pairs({{at, kKernel}, {kKernel, at}, {at, at + 1}});
    thread.drain(at + 1);
  }
  const auto entries = store.drain();
  ASSERT_TRUE(entries);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> got;
  for (const auto& entry : *entries) {
    if (entry.qualifier == arch::x86::BtsQualifier::kBranch) {
      got.emplace_back(entry.thread, entry.from);
    }
  }
  using Entries = decltype(got);
  EXPECT_EQ(got, (Entries{{1, 4}, {1, kKernel}, {2, 14}, {2, kKernel}}));
}

TEST(Levels, AreNotToBeHadEverywhere) {
  Sink whole;
  Bts ring;
  ASSERT_TRUE(ring.open());
  EXPECT_EQ(ring.recorder->see_kernel(whole).error().code.value(), EOPNOTSUPP);
  Bts gone;
  ASSERT_TRUE(gone.open_aux());
  gone.event().dead = true;
  gone.drain(1);
  EXPECT_EQ(gone.recorder->see_kernel(whole).error().code.value(), EOPNOTSUPP);
  Bts plain;
  plain.kernel.open_rule = [](const perf_event_attr& a) {
    return a.exclude_kernel == 0 ? EACCES : 0;
  };
  ASSERT_TRUE(plain.open_aux());
  EXPECT_EQ(plain.recorder->see_kernel(whole).error().code.value(), EACCES);
  // Recording continues as before.
  plain.event().aux_pairs(run_of(1, 3));
  plain.drain(4);
  plain.expect(numbers(1, 3), {});
  EXPECT_TRUE(whole.records.empty());
}

/// A CPU with two kinds of cores.
struct Hybrid : Bts {
  Hybrid() {
    kernel.devices["cpu_core/type"] = "4";
    kernel.devices["cpu_atom/type"] = "10";
  }
  static std::uint64_t unit_of(const perf_event_attr& attr) { return attr.config >> 32U; }
};

TEST(HybridCpus, GetAnEventForEachKindOfCoreInOneRing) {
  Hybrid t;
  ASSERT_TRUE(t.open());
  ASSERT_EQ(t.kernel.open_events(), 2U);
  EXPECT_EQ(Hybrid::unit_of(t.kernel.event(0).attr), 4U);
  EXPECT_EQ(Hybrid::unit_of(t.kernel.event(1).attr), 10U);
  EXPECT_EQ(t.kernel.event(1).output_of, t.kernel.event(0).fd);
  EXPECT_TRUE(t.kernel.event(1).enabled);
  // One event runs at a time; together they run all the time.
  for (std::size_t i = 0; i < 2; ++i) {
    t.kernel.event(i).auto_times = false;
    t.kernel.event(i).time_enabled = 1'000'000;
  }
  t.kernel.event(0).time_running = 400'000;
  t.kernel.event(1).time_running = 599'000;
  t.kernel.event(0).batch(run_of(1, 5));
  t.drain(6);
  t.expect({1, 2, 3, 4, 5}, {});
  // For a while no event ran.
  t.kernel.event(0).time_enabled = 3'000'000;
  t.drain(6);
  t.expect({1, 2, 3, 4, 5}, {"?"});
}

TEST(HybridCpus, AreNotSeenWhereAKindOfCoreCannotRecord) {
  Hybrid refused;
  refused.kernel.open_rule = [](const perf_event_attr& a) {
    return Hybrid::unit_of(a) == 10 ? EOPNOTSUPP : 0;
  };
  Hybrid apart;
  apart.kernel.shared_rings_work = false;
  for (Hybrid* t : {&refused, &apart}) {
    ASSERT_TRUE(t->open());
    EXPECT_EQ(t->kernel.open_events(), 1U);
    t->event().auto_times = false;
    t->event().time_enabled = 1000;
    t->event().time_running = 999;
    t->event().batch(run_of(1, 5));
    t->drain(6);
    t->expect({1, 2, 3, 4, 5}, {"?"});
  }
  Hybrid none;
  none.kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_FALSE(none.open());
  EXPECT_EQ(none.error.code.value(), EBUSY);
}

TEST(HybridCpus, HaveBranchStacksOfBothKinds) {
  SimulatedPerf kernel;
  kernel.devices["cpu_core/type"] = "4";
  kernel.devices["cpu_atom/type"] = "10";
  NopCode code;
  decoder::InsnCache insns{code};
  Sink sink;
  ASSERT_TRUE(LbrRecorder::open(kernel, kTid, 4096, insns, sink));
  ASSERT_EQ(kernel.opened.size(), 2U);
  EXPECT_EQ(Hybrid::unit_of(kernel.opened[1]), 10U);
}

}  // namespace
}  // namespace backtrail::tracee::simulated
