// Buffers that are read while their thread runs, so that nothing is overwritten or lost; and events
// that are one to us and several to the kernel.

#include <random>

#include <poll.h>

#include "test/unit/ptrace/perf_fixture.hpp"

namespace backtrail::tracee::simulated {
namespace {

/// Wakes, as the kernel means them: something is to be read now.
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
  for (int i = 0; i < 600; ++i) {
    // A context switch, or as much as the hardware writes before it interrupts.
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
  t.kernel.largest_ring = 65 * 4096;
  ASSERT_TRUE(t.open(BufferMode::kStream, 4U << 20U));
  EXPECT_EQ(t.recorder->event().data().size(), 64 * 4096U);
  EXPECT_EQ(t.event().attr.wakeup_watermark, 16 * 4096U);
  EXPECT_EQ(t.kernel.open_events(), 1U);
  Pt pt;
  pt.kernel.largest_area = 8 * 4096;
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
    ASSERT_TRUE(t.recorder->stream());  // Twice is once.
    EXPECT_EQ(t.kernel.opened.size(), 2U);
  }
}

TEST(Streams, LeaveTheHistoryWhereTheyCannotBeHad) {
  Bts t;
  ASSERT_TRUE(t.open(BufferMode::kHistory));
  t.event().batch(run_of(1, 5));
  t.drain(6);
  t.kernel.open_rule = [](const perf_event_attr& a) { return a.write_backward == 0 ? EPERM : 0; };
  const auto said = t.recorder->stream();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code.value(), EPERM);
  EXPECT_EQ(t.recorder->event().mode(), BufferMode::kHistory);
  t.event().batch(run_of(6, 5));
  t.drain(11);
  t.expect(numbers(1, 10), {});
  // Somebody else took the unit meanwhile.
  t.kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_FALSE(t.recorder->stream());
  EXPECT_TRUE(t.recorder->ended());
  t.drain(12);
  EXPECT_FALSE(t.recorder->statistics().empty());

  Pt pt;
  ASSERT_TRUE(pt.open(BufferMode::kHistory));
  pt.kernel.open_rule = [](const perf_event_attr&) { return EBUSY; };
  EXPECT_FALSE(pt.recorder->stream());
  EXPECT_TRUE(pt.recorder->ended());
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
  // One runs at a time; both together all the time.
  for (std::size_t i = 0; i < 2; ++i) {
    t.kernel.event(i).auto_times = false;
    t.kernel.event(i).time_enabled = 1'000'000;
  }
  t.kernel.event(0).time_running = 400'000;
  t.kernel.event(1).time_running = 599'000;
  t.kernel.event(0).batch(run_of(1, 5));
  t.drain(6);
  t.expect({1, 2, 3, 4, 5}, {});
  // Neither ran for a while.
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
