// SPDX-License-Identifier: Apache-2.0
// Misbehaviours of the kernel with the AUX area.

#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {

std::vector<Case> aux_cases() {
  return {
      {32, "an AUX record is lost but the head moves on",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 4));
         t.event().aux_records_fail = true;
         t.event().aux_pairs(run_of(5, 4));
         t.event().aux_records_fail = false;
         t.event().aux_pairs(run_of(9, 4));
         t.drain(13);
         t.expect(numbers(1, 12), {"?"});
       }},
      {33, "the head jumps over padding without a record",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 4));
         t.event().aux_padding(16);
         t.event().aux_padding(8);
         t.event().aux_pairs(run_of(5, 4));
         t.drain(9);
         t.expect(numbers(1, 8), {});
       }},
      {34, "padding holds a stale record whose from is 0",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_records_fail = true;
         t.event().aux_pairs(run_of(1, 2));
         t.event().aux_padding(24, {0, 0, 0, 0, 0, 0, 0, 0, 0x55, 0x44});
         t.event().aux_records_fail = false;
         t.event().aux_pairs(run_of(3, 2));
         t.drain(5);
         t.expect(numbers(1, 4), {"?"});
       }},
      {35, "chunks of mixed sizes: the grid's rest changes",
       [] {
         for (const std::uint64_t rest : {8U, 16U}) {
           Bts t;
           ASSERT_TRUE(t.open_aux());
           t.event().aux_pairs(run_of(1, 3));
           t.event().aux_padding(rest);
           t.event().aux_pairs(run_of(4, 3));
           t.event().aux_padding(24 - rest);
           t.event().aux_pairs(run_of(7, 3));
           t.drain(10);
           t.expect(numbers(1, 9), {});
         }
       }},
      {108, "bytes whose record is lost begin behind half of the padding",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 2));
         t.event().aux_padding(16);
         t.recorder->drain();
         t.event().aux_records_fail = true;
         t.event().aux_padding(8);
         t.event().aux_pairs(run_of(3, 2));
         t.event().aux_records_fail = false;
         t.event().aux_pairs(run_of(5, 2));
         t.drain(7);
         t.expect(numbers(1, 6), {"?"});
       }},
      {109, "bytes came though the event's time stands still",
       [] {
         for (const BufferMode mode : {BufferMode::kStream, BufferMode::kHistory}) {
           Bts t;
           ASSERT_TRUE(t.open_aux(mode));
           t.event().auto_times = false;
           mode == BufferMode::kStream ? t.event().aux_pairs(run_of(1, 2))
                                       : t.event().snapshot_pairs(run_of(1, 2));
           t.drain(3);
           t.expect({1, 2}, {});
         }
       }},
      {36, "TRUNCATED: the event is disabled",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 200));  // 170 fit
         EXPECT_FALSE(t.event().enabled);
         t.drain(201);
         EXPECT_TRUE(t.event().enabled);
         t.event().aux_pairs(run_of(300, 2));
         t.drain(302);
         t.expect(joined(numbers(1, 170), {300, 301}), {"?"});
       }},
      {37, "TRUNCATED without bytes",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_bytes({}, decoder::perf::kAuxTruncated);
         EXPECT_FALSE(t.event().enabled);
         t.drain(9);
         EXPECT_TRUE(t.event().enabled);
         t.expect({}, {"?"});
       }},
      {38, "disabled without any record: the event's time stands still",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 2));
         t.drain(3);
         const auto enables = t.event().enables;
         t.recorder->resumed();
         t.event().enabled = false;
         t.drain(9);
         EXPECT_EQ(t.event().enables, enables + 1);
         t.expect({1, 2}, {"?"});
       }},
      {39, "room for less than a record: the CPU stores nothing and says nothing",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 170));  // 16 bytes are left
         t.drain(180);
         t.expect(numbers(1, 170), {"?"});
       }},
      {40, "PARTIAL: holes within",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 2), decoder::perf::kAuxPartial);
         t.drain(3);
         Pt pt;
         ASSERT_TRUE(pt.open());
         pt.event().aux_bytes(psb_and(5), decoder::perf::kAuxPartial);
         pt.recorder->drain();
         EXPECT_EQ(ovfs(pt.history.read_all()), 1U);
         t.expect({1, 2}, {"?"});
       }},
      {41, "the tail never passes the head",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         for (std::uint64_t i = 0; i < 400; ++i) {
           t.event().aux_pairs(run_of(1 + i, 1));
           t.recorder->drain();
           ASSERT_LE(t.event().page().aux_tail, t.event().page().aux_head);
           ASSERT_LE(t.event().page().data_tail, t.event().page().data_head);
         }
         t.drain(401);
         t.expect(numbers(1, 400), {});
       }},
      {42, "a record's bytes are split over the area's end, at every offset",
       [] {
         for (std::uint64_t shift = 0; shift < 24; ++shift) {
           Bts t;
           ASSERT_TRUE(t.open_aux());
           t.event().write(RecordType::kComm, 0, {});  // advances the event's time
           t.event().aux_padding(2048);
           t.recorder->drain();
           t.event().aux_padding(2048 - 12 - shift);
           t.recorder->drain();
           t.event().aux_pairs(run_of(1, 3));
           t.drain(4);
           t.expect(numbers(1, 3), {});
         }
       }},
      {43, "the record is visible, the head still behind",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 3));
         const std::uint64_t head = t.event().page().aux_head;
         t.event().page().aux_head = 24;
         t.recorder->drain();
         EXPECT_TRUE(t.sink.branches().empty());
         t.event().page().aux_head = head;
         t.drain(4);
         t.expect(numbers(1, 3), {});
       }},
      {44, "snapshot: the head goes backwards",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux(BufferMode::kHistory));
         t.event().snapshot_pairs(run_of(1, 160));
         t.drain(161);
         t.event().snapshot_pairs(run_of(161, 20));
         EXPECT_LT(t.event().page().aux_head, 160U * 24);
         t.drain(181);
         t.expect(numbers(1, 180), {});
       }},
      {45, "snapshot: not wrapped yet, zeros behind the head",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux(BufferMode::kHistory));
         t.event().snapshot_pairs(run_of(1, 5));
         t.drain(6);
         t.expect(numbers(1, 5), {});
       }},
      {46, "snapshot: wrapped an unknown number of times",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux(BufferMode::kHistory));
         t.event().snapshot_pairs(run_of(1, 5));
         t.drain(6);
         t.event().snapshot_pairs(run_of(6, 1000));
         t.drain(1006);
         t.expect(joined(numbers(1, 5), numbers(836, 170)), {"?"});
       }},
      {47, "snapshot: the hardware is stopped before the area is read",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux(BufferMode::kHistory));
         bool running_while_read = false;
         t.kernel.on_load = [&] { running_while_read = running_while_read || t.event().enabled; };
         t.event().snapshot_pairs(run_of(1, 5));
         t.drain(6);
         EXPECT_FALSE(running_while_read);
         EXPECT_TRUE(t.event().enabled);
       }},
      {50, "kernel ends in a user-only area are marks, never addresses",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs({{5, 10}, {20, kKernel}, {kKernel + 1, 90}, {95, 100}});
         t.drain(100);
         t.expect({5, 95}, {});
         ASSERT_EQ(t.sink.marks.size(), 2U);
         EXPECT_EQ(t.sink.marks[0].kind, MarkKind::kLeftAsync);
         EXPECT_EQ(t.sink.records[2].kind, RecordKind::kAsync);
       }},
      {51, "an interrupt: left and back at one place",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs({{5, 10}, {20, kKernel}, {kKernel + 1, 20}, {25, 100}});
         t.drain(100);
         t.expect({5, 25}, {});
         EXPECT_TRUE(t.sink.marks.empty());
       }},
      {52, "the third word holds what was there before",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 3));  // the simulation always leaves garbage there
         t.drain(4);
         t.expect(numbers(1, 3), {});
       }},
      {53, "ITRACE_START comes twice, or never",
       [] {
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().write(RecordType::kItraceStart, 0, {1});
         t.event().write(RecordType::kItraceStart, 0, {1});
         t.event().aux_pairs(run_of(1, 3));
         t.drain(4);
         t.expect(numbers(1, 3), {});
       }},
      {54, "the thread moves to another CPU between batches",
       [] {
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kStream, 4096, true));
         t.event().batch(run_of(1, 3));
         t.event().switched(true, 5);
         t.event().switched(false, 6);
         t.event().batch(run_of(4, 3));
         t.drain(7);
         t.expect(numbers(1, 6), {});
         EXPECT_EQ(t.sink.marks.size(), 2U);
       }},
      {82, "an AUX record finds no room and nothing is written behind it",
       [] {
         const auto crowd = [](test::SimulatedEvent& event) {
           while (event.free_bytes() >= 32) event.write(RecordType::kComm, 0, {0});
         };
         Bts t;
         ASSERT_TRUE(t.open_aux());
         t.event().aux_pairs(run_of(1, 2));
         crowd(t.event());
         t.event().aux_pairs(run_of(3, 200));  // 168 fit: its record would say TRUNCATED
         EXPECT_FALSE(t.event().enabled);
         t.drain(203);
         t.expect(numbers(1, 170), {"?"});
         EXPECT_TRUE(t.event().enabled);
         Pt pt;
         ASSERT_TRUE(pt.open());
         pt.event().aux_bytes(psb_and(1));
         crowd(pt.event());
         pt.event().aux_bytes(psb_and(2));
         pt.recorder->drain();
         EXPECT_EQ(decoder::count_packets(pt.history.read_all()).of(decoder::PtKind::kPsb), 2U);
         EXPECT_GE(ovfs(pt.history.read_all()), 1U);
       }},
  };
}

}  // namespace backtrail::tracee::simulated
