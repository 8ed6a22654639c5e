// SPDX-License-Identifier: Apache-2.0
// Misbehaviours of the kernel with branch stacks, packets and marks.

#include <ctime>

#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {
namespace {

/// Returns the stack of a loop of one branch after many iterations.
std::vector<std::array<std::uint64_t, 3>> loop_of(std::size_t entries) {
  return {entries, {1, 1, 0}};
}

}  // namespace

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
         // Stacks of a loop look as if they joined, but must not join over either record alone.
         for (const RecordType type : {RecordType::kThrottle, RecordType::kUnthrottle}) {
           Lbr loop;
           loop.sample(loop_of(3));
           loop.kernel.last().write(type, 0, {1, 2, 3});
           loop.sample(loop_of(3));
           loop.recorder->drain();
           EXPECT_EQ(loop.sink.gaps(), (Texts{"?", "?"}));
         }
       }},
      {98, "stacks are lost between two that look as if they joined",
       [] {
         Lbr told;
         told.sample(loop_of(3));
         told.kernel.last().write(RecordType::kLost, 0, {1, 5});
         told.sample(loop_of(3));
         told.recorder->drain();
         EXPECT_EQ(told.sink.gaps(), (Texts{"?", "?"}));
         Lbr samples;
         samples.sample(loop_of(3));
         samples.kernel.last().write(RecordType::kLostSamples, 0, {5});
         samples.sample(loop_of(3));
         samples.recorder->drain();
         EXPECT_EQ(samples.sink.gaps(), (Texts{"?", "?"}));
         // As in the kernel: the ring is full for a while.
         Lbr full;
         const std::uint64_t loop_bytes = 8 + 16 + 3 * 24;
         const std::uint64_t fit = (full.kernel.last().ring_bytes() - 1) / loop_bytes;
         for (std::uint64_t i = 0; i < fit + 3; ++i) full.sample(loop_of(3));
         full.recorder->drain();
         EXPECT_EQ(full.sink.gaps(), (Texts{"?"}));
         full.sample(loop_of(3));
         full.recorder->drain();
         EXPECT_EQ(full.sink.gaps(), (Texts{"?", "?"}));
       }},
      {99, "a record among stacks makes no sense",
       [] {
         Lbr t;
         t.sample(loop_of(3));
         const std::uint64_t at = t.kernel.last().page().data_head;
         t.sample(loop_of(3));
         t.kernel.last().claim_size(at, 4);
         t.recorder->drain();
         t.sample(loop_of(3));
         t.recorder->drain();
         EXPECT_EQ(t.sink.gaps(), (Texts{"?", "?"}));
         // A sample that is shorter than its count says.
         Lbr cut;
         cut.sample(loop_of(3));
         cut.kernel.last().write(RecordType::kSample, 0, {0x99, 7, 1, 2, 3});
         cut.sample(loop_of(3));
         cut.recorder->drain();
         EXPECT_EQ(cut.sink.gaps(), (Texts{"?", "?"}));
       }},
      {100, "the unit of branch stacks had another user for a while",
       [] {
         Lbr t;
         t.sample(loop_of(3));
         t.recorder->drain();
         t.kernel.last().time_enabled += 5000;
         t.sample(loop_of(3));
         t.recorder->drain();
         EXPECT_EQ(t.sink.gaps(), (Texts{"?", "?"}));
         // No effect remains afterwards.
         t.sample({{4, 5, 0}, {3, 4, 0}});
         t.recorder->drain();
         t.sample({{5, 6, 0}, {4, 5, 0}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.gaps().size(), 3U);
         // The stack that follows may come later.
         t.kernel.last().time_enabled += 5000;
         t.recorder->drain();
         t.sample({{6, 7, 0}, {5, 6, 0}});
         t.recorder->drain();
         EXPECT_EQ(t.sink.gaps().size(), 4U);
       }},
      {101, "a record that makes no sense hides where bytes of the area belong",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 2));
         const std::uint64_t at = t.event().page().data_head;
         t.event().aux_pairs(run_of(3, 2));
         t.event().claim_size(at, 4);
         t.drain(5);
         t.event().aux_pairs(run_of(5, 2));
         t.drain(7);
         t.expect(numbers(1, 6), {"?"});
         Pt pt;
         ASSERT_TRUE(pt.open());
         pt.event().aux_bytes(psb_and(1));
         const std::uint64_t before = pt.event().page().data_head;
         pt.event().aux_bytes(psb_and(2));
         pt.event().claim_size(before, 4);
         pt.recorder->drain();
         pt.event().aux_bytes(psb_and(3));
         pt.recorder->drain();
         const auto bytes = pt.history.read_all();
         EXPECT_EQ(decoder::count_packets(bytes).of(decoder::PtKind::kPsb), 3U);
         EXPECT_EQ(ovfs(bytes), 1U);
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
         const std::vector<std::vector<std::uint8_t>> behind{
             {0x7d, 0x10, 0, 0, 0, 0, 0},  // FUP
             {0x71, 0x10, 0, 0, 0, 0, 0},  // TIP.PGE
             {},
             {0x01},  // TIP.PGD without an address
         };
         for (const auto& next : behind) {
           bytes.insert(bytes.end(), {0x02, 0xf3});
           bytes.insert(bytes.end(), next.begin(), next.end());
           bytes.push_back(0x06);
         }
         t.event().aux_bytes(bytes);
         t.recorder->drain();
         // The decoder reports the overflow, so the recorder must not.
         EXPECT_EQ(t.history.read_all(), bytes);
         EXPECT_EQ(ovfs(bytes), behind.size());
         EXPECT_NE(t.recorder->statistics().find(" 0 gaps"), std::string::npos);
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
         kernel.last().switched(true, ++time);  // LOST before it reports the same loss
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
      {72, "there is no way from time stamps to nanoseconds",
       [] {
         SimulatedPerf kernel;
         auto marks = SchedMarks::open(kernel, kTid);
         ASSERT_TRUE(marks);
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kStream, 4096, true));
         for (test::SimulatedEvent* event : {&kernel.last(), &t.event()}) {
           event->page().capabilities = 0;
           event->page().time_zero = event->page().time_mult = ~0U;
           event->page().time_shift = 63;
           event->switched(true, 123'456'789);
           event->switched(false, 123'456'790);
           // Times are in nanoseconds, of a clock that other programs can read.
           EXPECT_EQ(event->attr.use_clockid, 1U);
           EXPECT_EQ(event->attr.clockid, CLOCK_MONOTONIC);
         }
         const auto got = (*marks)->take();
         ASSERT_EQ(got.size(), 2U);
         EXPECT_EQ(got[0].time_ns, 123'456'789U);
         t.drain(1);
         ASSERT_EQ(t.sink.marks.size(), 2U);
         EXPECT_EQ(t.sink.marks[1].time_ns, 123'456'790U);
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
         // AMD's Zen 3 accepts only one event.
         kernel.open_rule = [](const perf_event_attr& a) {
           const bool taken = a.type == PERF_TYPE_RAW && a.config == 0xc4;
           return taken && a.sample_period > 16 ? 0 : EINVAL;
         };
         EXPECT_TRUE(LbrRecorder::open(kernel, kTid, 4096, insns, sink));
         // An error that another period cannot avoid is reported at once.
         kernel.open_rule = [](const perf_event_attr& a) {
           return a.type == PERF_TYPE_RAW ? EINVAL : EACCES;
         };
         const auto refused = LbrRecorder::open(kernel, kTid, 4096, insns, sink);
         ASSERT_FALSE(refused);
         EXPECT_EQ(refused.error().code.value(), EACCES);
       }},
      {102, "the hardware forgets its stack at a stop",
       [] {
         Lbr t;
         t.recorder->resumed();
         t.sample(loop_of(3));
         t.recorder->drain(TraceeAddr{1});
         const auto before = t.sink.gaps();
         EXPECT_EQ(before.back(), "unrecorded");
         t.recorder->resumed();
         t.sample(loop_of(3));
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches().size(), 6U);
         EXPECT_EQ(t.sink.gaps().size(), before.size() + 1);
         // One gap for all that runs after the event is dead.
         t.recorder->drain(TraceeAddr{1});
         t.kernel.last().dead = true;
         t.recorder->drain();
         const std::size_t gaps = t.sink.gaps().size();
         t.recorder->drain(TraceeAddr{1});
         EXPECT_EQ(t.sink.gaps().size(), gaps);
         t.recorder->resumed();
         t.recorder->drain(TraceeAddr{2});
         t.recorder->drain(TraceeAddr{2});
         EXPECT_EQ(t.sink.gaps().size(), gaps + 1);
       }},
      {80, "a record that makes no sense ends the walk; the next drain goes on",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().write(RecordType::kSample, 0, {3, 4});
         t.event().claim_size(24, 4);
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
