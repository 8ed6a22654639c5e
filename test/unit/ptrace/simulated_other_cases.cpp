// What the kernel does wrong with branch stacks, packets and marks.

#include "test/unit/ptrace/perf_fixture.hpp"

namespace backtrail::tracee::simulated {

std::vector<Case> other_cases() {
  return {
      {59, "throttled: samples are missing between the two records",
       [] {
         Lbr t;
         t.sample({{2, 3, 0}, {1, 2, 0}});
         t.kernel.last().write(RecordType::kThrottle, 0, {1, 2, 3});
         t.kernel.last().write(RecordType::kUnthrottle, 0, {1, 2, 3});
         t.sample({{9, 10, 0}, {8, 9, 0}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches(), (std::vector<std::uint64_t>{1, 2, 8, 9}));
         EXPECT_EQ(t.sink.gaps().size(), 2U);  // before the first stack, and here
       }},
      {60, "a stack is empty, or its entries have kernel ends or none",
       [] {
         Lbr t;
         t.sample({});
         t.sample({{kKernel, 3, 0}, {0, 3, 0}, {5, 0, 0}, {1, 2, 0}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches(), numbers(1, 1));
       }},
      {61, "an entry of a wrong path",
       [] {
         Lbr t;
         t.sample({{2, 3, 0}, {77, 78, 1U << 24U}, {1, 2, 3U << 24U}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches(), numbers(1, 2));
       }},
      {62, "stacks overlap, or do not join",
       [] {
         Lbr t;
         t.sample({{3, 4, 0}, {2, 3, 0}, {1, 2, 0}});
         t.sample({{5, 6, 0}, {4, 5, 0}, {3, 4, 0}});
         t.sample({{21, 22, 0}, {20, 21, 0}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches(), joined(numbers(1, 5), {20, 21}));
         EXPECT_EQ(t.sink.gaps(), (Texts{"?", "?"}));
       }},
      {63, "an overflow packet is told once and stays in the stream",
       [] {
         Pt t;
         ASSERT_TRUE(t.open());
         auto bytes = psb_and(3);
         bytes.insert(bytes.end(), {0x02, 0xf3});
         t.event().aux_bytes(bytes);
         t.recorder->drain();
         EXPECT_EQ(t.history.read_all(), bytes);
       }},
      {64, "the first bytes are the middle of a packet",
       [] {
         Pt t;
         ASSERT_TRUE(t.open(BufferMode::kHistory));
         auto bytes = psb_and(3);
         bytes.insert(bytes.begin(), {0x34, 0x12, 0x55});
         t.event().snapshot_bytes(bytes);
         t.recorder->drain();
         EXPECT_EQ(t.history.read_all(), psb_and(3));
       }},
      {65, "a slice without any PSB",
       [] {
         Pt t;
         ASSERT_TRUE(t.open());
         auto whole = psb_and(3);
         t.event().aux_bytes(whole);
         const std::vector<std::uint8_t> slice{0, 0, 0, 0x06, 0x06};
         t.event().aux_bytes(slice);
         t.recorder->drain();
         whole.insert(whole.end(), slice.begin(), slice.end());
         EXPECT_EQ(t.history.read_all(), whole);
       }},
      {66, "the area ends in the middle of a packet",
       [] {
         Pt t;
         ASSERT_TRUE(t.open());
         auto bytes = psb_and(3);
         bytes.insert(bytes.end(), {0x6d, 0x01, 0x02});  // a TIP with six bytes
         t.event().aux_bytes(bytes, decoder::perf::kAuxTruncated);
         t.recorder->drain();
         EXPECT_TRUE(t.event().enabled);
         t.event().aux_bytes(psb_and(1));
         t.recorder->drain();
         auto expected = psb_and(3);
         expected.insert(expected.end(), {0x02, 0xf3});
         const auto more = psb_and(1);
         expected.insert(expected.end(), more.begin(), more.end());
         EXPECT_EQ(t.history.read_all(), expected);
         EXPECT_EQ(decoder::count_packets(expected).errors, 0U);
       }},
      {67, "departures are missing or doubled",
       [] {
         SimulatedPerf kernel;
         auto marks = SchedMarks::open(kernel, kTid);
         ASSERT_TRUE(marks);
         kernel.last().switched(true, 1);
         kernel.last().switched(true, 2, true);
         kernel.last().write(RecordType::kLost, 0, {1, 5, 0, 0, 0});
         kernel.last().switched(false, 3);
         const auto got = (*marks)->take();
         ASSERT_EQ(got.size(), 3U);
         EXPECT_EQ(got[0].kind, MarkKind::kDeparts);
         EXPECT_EQ(got[1].kind, MarkKind::kPreempted);
         EXPECT_EQ(got[2].kind, MarkKind::kArrives);
         EXPECT_EQ(got[2].cpu, 3);
         EXPECT_EQ((*marks)->lost(), 5U);
       }},
      {85, "marks find no room and nothing is written behind them",
       [] {
         SimulatedPerf kernel;
         auto marks = SchedMarks::open(kernel, kTid);
         ASSERT_TRUE(marks);
         std::uint64_t time = 0;
         for (; kernel.last().lost_total == 0; ++time) kernel.last().switched(time % 2 == 0, time);
         const auto got = (*marks)->take();
         EXPECT_EQ(got.size() + 1, time);
         EXPECT_EQ((*marks)->lost(), 1U);
         kernel.last().switched(true, ++time);  // LOST before it says the same
         EXPECT_EQ((*marks)->take().size(), 1U);
         EXPECT_EQ((*marks)->lost(), 1U);
       }},
      {68, "one clock for marks and branches",
       [] {
         SimulatedPerf kernel;
         ASSERT_TRUE(SchedMarks::open(kernel, kTid));
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kStream, 4096, true));
         EXPECT_EQ(kernel.opened.back().clockid, t.kernel.opened.back().clockid);
         EXPECT_EQ(t.kernel.opened.back().use_clockid, 1U);
       }},
      {76, "PT's capability bits are missing: dropped one after the other",
       [] {
         Pt t;
         t.kernel.open_rule = [](const perf_event_attr& a) { return a.config != 0 ? EINVAL : 0; };
         EXPECT_TRUE(t.open());
         Pt absent;
         absent.kernel.devices.clear();
         EXPECT_FALSE(PtRecorder::open(absent.kernel, kTid, {}, absent.history));
       }},
      {77, "PT: the head moves without a record because the ring was full",
       [] {
         Pt t;
         ASSERT_TRUE(t.open());
         t.event().aux_bytes(psb_and(1));
         t.event().aux_records_fail = true;
         t.event().aux_bytes(psb_and(2));
         t.event().aux_records_fail = false;
         t.event().aux_bytes(psb_and(3));
         t.recorder->drain();
         EXPECT_EQ(t.recorder->event().aux_head(), t.event().page().aux_tail);
         EXPECT_GE(ovfs(t.history.read_all()), 1U);
       }},
      {78, "PT: overwritten under the reader more than once",
       [] {
         Pt t;
         ASSERT_TRUE(t.open(BufferMode::kHistory));
         for (int i = 0; i < 40; ++i) t.event().snapshot_bytes(psb_and(200));
         t.recorder->drain();
         for (int i = 0; i < 40; ++i) t.event().snapshot_bytes(psb_and(211));
         t.recorder->drain();
         const auto bytes = t.history.read_all();
         EXPECT_GT(bytes.size(), 3000U);
         EXPECT_EQ(decoder::count_packets(bytes).errors, 0U);
       }},
      {79, "a period that is too small for branch stacks",
       [] {
         SimulatedPerf kernel;
         NopCode code;
         decoder::InsnCache insns{code};
         Sink sink;
         kernel.open_rule = [](const perf_event_attr& a) {
           return a.sample_period <= 16 ? EINVAL : 0;
         };
         EXPECT_TRUE(LbrRecorder::open(kernel, kTid, 4096, insns, sink));
         // AMD's Zen 3, which takes one event alone, too.
         kernel.open_rule = [](const perf_event_attr& a) {
           const bool taken = a.type == PERF_TYPE_RAW && a.config == 0xc4;
           return taken && a.sample_period > 16 ? 0 : EINVAL;
         };
         EXPECT_TRUE(LbrRecorder::open(kernel, kTid, 4096, insns, sink));
       }},
      {80, "a record that makes no sense ends the walk; the next drain goes on",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().write(RecordType::kSample, 0, {3, 4});
         // The second record claims a size of 4.
         t.event().memory[512 + 3] =
             (t.event().memory[512 + 3] & 0xffff'ffff'ffffU) | (4ULL << 48U);
         t.recorder->drain();
         t.event().sample(5, 6);
         t.drain(6);
         t.expect({1, 5}, {"?"});
       }},
      {81, "the ring is lapped although it must not be",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().page().data_head += t.event().ring_bytes();
         t.recorder->drain();
         t.event().sample(5, 6);
         t.drain(6);
         t.expect({5}, {"?"});
       }},
  };
}

}  // namespace backtrail::tracee::simulated
