// SPDX-License-Identifier: Apache-2.0
// Misbehaviours of the kernel with the data ring.

#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {

std::vector<Case> ring_cases() {
  return {
      {1, "a record's body is split over the ring's end, at every offset",
       [] {
         for (std::uint64_t from_end = 8; from_end <= 24; from_end += 8) {
           Bts t;
           ASSERT_TRUE(t.open());
           t.read_up_to_the_end(from_end);
           t.event().sample(100, 101);
           t.event().sample(101, 102);
           t.drain(102);
           t.expect({100, 101}, {});
         }
       }},
      {2, "a sample straddles the end by its last 8 bytes",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.read_up_to_the_end(16);
         t.event().sample(7, 8);
         t.drain(8);
         t.expect({7}, {});
       }},
      {3, "a record behind the head is not complete yet",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(7, 8);
         t.event().memory[512 + 3] = 0xffff'ffff'ffff'ffff;  // still being written
         t.drain(8);
         t.event().sample(8, 9);
         t.drain(9);
         t.expect({7, 8}, {});
       }},
      {4, "the ring is full, single records are dropped",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         const std::uint64_t fit = (t.event().ring_bytes() - 1) / 24;
         for (const auto& [from, to] : run_of(1, fit + 5)) t.event().sample(from, to);
         t.drain(fit + 6);
         t.event().sample(fit + 6, fit + 7);
         t.drain(fit + 7);
         t.expect(joined(numbers(1, fit), {fit + 6}), {"5 batches"});
       }},
      {5, "a batch does not fit: all of it is lost and counts as one",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         const std::uint64_t batch = 2560;
         t.event().batch(run_of(1, batch));
         t.event().batch(run_of(1 + batch, batch));
         t.event().batch(run_of(1 + 2 * batch, batch));
         t.drain(1 + 3 * batch);
         t.event().batch(run_of(1 + 3 * batch, 3));
         t.drain(4 + 3 * batch);
         t.expect(joined(numbers(1, 2 * batch), numbers(1 + 3 * batch, 3)), {"1 batches"});
       }},
      {6, "LOST carries somebody else's id",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().write(RecordType::kLost, 0, {123456, 3});
         t.event().sample(5, 6);
         t.drain(6);
         t.expect({5}, {"3 batches"});
       }},
      {7, "LOST is never written because nothing follows; only read() counts",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(5, 6);
         t.event().lost_total = 4;
         t.event().dead = true;
         t.drain(9);
         t.expect({5}, {"4 batches"});
         EXPECT_TRUE(t.recorder->ended());
       }},
      {8, "the kernel knows no count of lost records",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr& a) {
           return (a.read_format & 16) != 0 ? EINVAL : 0;
         };
         ASSERT_TRUE(t.open());
         const std::uint64_t batch = 2560;
         t.event().batch(run_of(1, batch));
         t.recorder->drain();
         t.event().batch(run_of(1 + batch, batch));
         t.event().batch(run_of(1 + 2 * batch, batch));
         t.event().batch(run_of(1 + 3 * batch, batch));  // no room
         t.event().dead = true;
         t.drain(9);
         t.expect(numbers(1, 3 * batch), {"?"});
         // With room all the time, no record is missing.
         Bts roomy;
         roomy.kernel.open_rule = t.kernel.open_rule;
         ASSERT_TRUE(roomy.open());
         roomy.event().sample(5, 6);
         roomy.event().dead = true;
         roomy.drain(9);
         roomy.expect({5}, {});
       }},
      {9, "the writer laps the reader in the middle of its copy",
       [] {
         Bts t;
         t.kernel.pause_works = false;
         ASSERT_TRUE(t.open(BufferMode::kHistory));
         const std::uint64_t fit = t.event().ring_bytes() / 24;
         for (const auto& [from, to] : run_of(1, fit)) t.event().sample(from, to);
         int loads = 0;
         t.kernel.on_load = [&] {
           if (++loads != 2) return;
           // Overwrites records while the copy is made.
           for (const auto& [from, to] : run_of(fit + 1, 10)) t.event().sample(from, to);
         };
         t.drain(fit + 1);
         t.kernel.on_load = {};
         const auto got = t.sink.branches();
         ASSERT_FALSE(got.empty());
         EXPECT_EQ(got.back(), fit);
         EXPECT_GT(got.front(), 1U);
         EXPECT_EQ(t.sink.gaps().size() + 1, static_cast<std::size_t>(std::count(
                                                 t.sink.order.begin(), t.sink.order.end(), 'g')));
       }},
      {10, "the oldest record is half overwritten",
       [] {
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kHistory));
         const std::uint64_t fit = t.event().ring_bytes() / 24;
         ASSERT_NE(t.event().ring_bytes() % 24, 0U);
         for (const auto& [from, to] : run_of(1, fit + 100)) t.event().sample(from, to);
         t.drain(fit + 101);
         t.expect(numbers(101, fit), {"100"});
         EXPECT_EQ(t.sink.records[0].reason, GapReason::kStart);
       }},
      {11, "a ring that is written over holds batches, each from its oldest record on",
       [] {
         for (const std::uint64_t count : {1U, 7U, 100U, 500U}) {
           Bts t;
           ASSERT_TRUE(t.open(BufferMode::kHistory));
           const std::uint64_t fit = t.event().ring_bytes() / 24;
           const std::uint64_t batches = 3 + fit / count;
           // One drain sees many batches, or the last part of one.
           for (std::uint64_t i = 0; i < batches; ++i)
             t.event().batch(run_of(1 + i * count, count));
           const std::uint64_t all = batches * count;
           t.drain(1 + all);
           const std::uint64_t kept = std::min(all, fit);
           t.expect(numbers(1 + all - kept, kept),
                    all == kept ? Texts{} : Texts{std::to_string(all - kept)});
           // Some more records after the last ones were read.
           t.event().batch(run_of(1 + all, 5));
           t.event().batch(run_of(6 + all, 5));
           t.drain(11 + all);
           const auto got = t.sink.branches();
           ASSERT_EQ(got.size(), kept + 10);
           EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
         }
       }},
      {12, "what comes while output is paused is lost",
       [] {
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kHistory));
         t.event().sample(1, 2);
         int loads = 0;
         t.kernel.on_load = [&] {
           if (++loads == 1) t.event().sample(2, 3);
         };
         t.drain(3);
         t.kernel.on_load = {};
         t.event().sample(3, 4);
         t.drain(4);
         t.expect({1, 3}, {"1 batches"});
       }},
      {13, "POLLIN is seen once only: each drain goes to the head",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         for (const auto& [from, to] : run_of(1, 30)) t.event().sample(from, to);
         t.drain(31);
         t.drain(31);
         t.expect(numbers(1, 30), {});
       }},
      {14, "other records fill the ring without a wakeup",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         const std::uint64_t size = t.event().ring_bytes();
         for (std::uint64_t i = 0; i < size / 16 + 10; ++i)
           t.event().write(RecordType::kComm, 0, {i});
         t.event().sample(1, 2);
         t.drain(1);
         t.event().sample(1, 2);
         t.drain(2);
         ASSERT_EQ(t.sink.gaps().size(), 1U);
         EXPECT_EQ(t.sink.branches(), numbers(1, 1));
       }},
      {15, "POLLHUP with records unread",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         for (const auto& [from, to] : run_of(1, 9)) t.event().sample(from, to);
         t.event().dead = true;
         t.drain(10);
         t.expect(numbers(1, 9), {});
         t.drain(10);
         t.expect(numbers(1, 9), {});
       }},
      {16, "POLLHUP at once: no ring",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().dead = true;
         t.drain(1);
         EXPECT_TRUE(t.recorder->ended());
         t.expect({}, {});
       }},
      {17, "a set-id exec takes the events from a living thread",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().dead = true;
         t.drain(2);
         EXPECT_TRUE(t.recorder->ended());
         EXPECT_EQ(t.event().enables, 1U);  // nothing can bring it back
         t.expect({1}, {});
         t.recorder->resumed();
         t.drain(99);
         t.drain(99);
         t.expect({1}, {"unrecorded"});
         EXPECT_EQ(t.sink.records.back().to, TraceeAddr{99});
         Pt pt;
         ASSERT_TRUE(pt.open());
         pt.event().aux_bytes(psb_and(3));
         pt.event().dead = true;
         pt.recorder->drain();
         EXPECT_EQ(ovfs(pt.history.read_all()), 0U);
         pt.recorder->resumed();
         pt.recorder->drain();
         pt.recorder->drain();
         EXPECT_EQ(ovfs(pt.history.read_all()), 1U);
         Lbr lbr;
         lbr.sample({{1, 2, 0}});
         lbr.kernel.last().dead = true;
         lbr.recorder->drain();
         const std::size_t before = lbr.sink.gaps().size();
         lbr.recorder->resumed();
         lbr.recorder->drain(TraceeAddr{99});
         EXPECT_EQ(lbr.sink.gaps().size(), before + 1);
         EXPECT_EQ(lbr.sink.gaps().back(), "unrecorded");
       }},
      {103, "events are taken from a thread that runs and is read meanwhile",
       [] {
         const auto check = [](Bts& t, auto write) {
           write();
           t.recorder->drain();
           t.recorder->drain();
           t.event().dead = true;
           t.recorder->drain();
           EXPECT_TRUE(t.recorder->ended());
           // The thread has not stopped since, and runs unrecorded.
           t.drain(99);
           t.drain(99);
           t.expect({1, 2, 3}, {"unrecorded"});
         };
         Bts ring;
         ASSERT_TRUE(ring.open());
         check(ring, [&] { ring.event().batch(run_of(1, 3)); });
         Bts area;
         ASSERT_TRUE(area.open_aux());
         check(area, [&] { area.event().aux_pairs(run_of(1, 3)); });
         Pt pt;
         ASSERT_TRUE(pt.open());
         pt.event().aux_bytes(psb_and(3));
         pt.recorder->drain(false);
         pt.event().dead = true;
         pt.recorder->drain(false);
         pt.recorder->drain();
         pt.recorder->drain();
         EXPECT_EQ(ovfs(pt.history.read_all()), 1U);
       }},
      {105, "a ring that holds no whole batch loses it, and nothing counts that",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr& a) {
           return (a.read_format & 16) != 0 ? EINVAL : 0;
         };
         t.kernel.largest_ring = 5 * 4096;
         ASSERT_TRUE(t.open());
         t.event().batch(run_of(1, 2560));
         t.drain(2561);
         t.drain(2561);
         t.expect({}, {"?"});
         t.recorder->resumed();
         t.recorder->drain();
         t.event().batch(run_of(2561, 2560));
         t.drain(5121);
         t.expect({}, {"?", "?"});
         // The ring is found full while the thread runs, and is emptied before it stops.
         Bts full;
         full.kernel.open_rule = t.kernel.open_rule;
         ASSERT_TRUE(full.open());
         for (std::uint64_t i = 0; i < 3; ++i) full.event().batch(run_of(1 + i * 2560, 2560));
         full.recorder->drain();
         full.drain(7681);
         full.expect(numbers(1, 5120), {"?"});
       }},
      {106, "a record of the ring is too short for what it says it is",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().write(RecordType::kSample, 0, {9});
         t.event().sample(2, 3);
         t.drain(3);
         t.expect({1, 2}, {"?"});
         // With an AUX area, the ring has no samples, and others may throttle it.
         Bts area;
         ASSERT_TRUE(area.open_aux());
         area.event().write(RecordType::kThrottle, 0, {1, 2, 3});
         area.event().aux_pairs(run_of(1, 3));
         area.drain(4);
         EXPECT_FALSE(area.recorder->not_bts());
         area.expect({1, 2, 3}, {});
       }},
      {107, "a history that is written over while it is read",
       [] {
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kHistory, 32 * 4096));
         t.event().batch(run_of(1, 1000));
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches().size(), 1000U);
         // A batch that the head does not show yet may overwrite the oldest records.
         t.event().batch(run_of(1001, 2000));
         t.event().batch(run_of(3001, 2000));
         t.recorder->drain();
         EXPECT_EQ(t.sink.branches().size(), 1000U);
         t.drain(5001);
         t.expect(numbers(1, 5000), {});
         // A record that makes no sense must be reported, too.
         t.event().batch(run_of(5001, 5));
         t.event().claim_size(t.event().page().data_head - 48, 4);
         t.drain(5006);
         t.expect(numbers(1, 5003), {"?"});
       }},
      {104, "records were lost before they got anywhere",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.event().write(RecordType::kLostSamples, 0, {4});
         t.event().sample(2, 3);
         t.drain(3);
         t.expect({1, 2}, {"4"});
       }},
      {18, "records come after the stop was reported, before the first request succeeds",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.recorder->drain();  // without a pc: the thread may still be on its CPU
         t.event().batch(run_of(1, 5));
         t.drain(6);
         t.expect(numbers(1, 5), {});
       }},
      {19, "nothing is visible for long while the thread runs",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         for (int i = 0; i < 10; ++i) t.recorder->drain();
         t.event().batch(run_of(1, 2560));
         t.drain(2561);
         t.expect(numbers(1, 2560), {});
       }},
      {20, "a batch comes after the departure that ended it, with one later time",
       [] {
         Bts t;
         ASSERT_TRUE(t.open(BufferMode::kStream, 4096, true));
         t.event().switched(false, 10);
         t.event().batch(run_of(1, 2));
         t.event().switched(true, 20);
         t.event().batch(run_of(3, 2));
         t.event().switched(false, 30);
         t.drain(5);
         EXPECT_EQ(t.sink.order, "g+bbbb-+");
         EXPECT_EQ(t.sink.marks[1].time_ns, 20U);
         t.expect(numbers(1, 4), {});
       }},
      {21, "misc says kernel on user samples",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().write(RecordType::kSample, 1, {5, 6});
         t.event().write(RecordType::kSample, 2, {6, 7});
         t.drain(7);
         t.expect({5, 6}, {});
       }},
      {22, "a system call leaves no record at all",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().batch({{5, 10}, {20, kKernel}, {kKernel + 1, 22}, {40, 50}});
         t.drain(50);
         t.expect({5, 40}, {});  // from 10 straight to 40
       }},
      {23, "a signal: the next branch cannot be reached",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().batch({{5, 1000}, {20, 30}});
         t.drain(30);
         t.expect({5, 20}, {"async"});
       }},
      {24, "two users of the unit take turns",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(1, 2);
         t.drain(2);
         t.event().time_enabled += 5000;
         t.event().sample(7, 8);
         t.drain(8);
         t.event().sample(8, 9);
         t.drain(9);
         t.expect({1, 7, 8}, {"?"});
       }},
      {25, "a pinned event found its unit taken: read() says end of file",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         EXPECT_EQ(t.kernel.opened.back().pinned, 1U);
         t.event().sample(1, 2);
         t.event().in_error = true;
         t.drain(5);
         EXPECT_FALSE(t.event().in_error);  // enabled anew
         t.expect({1}, {"?"});
       }},
      {26, "the thread ran on a core whose unit was not asked for",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.drain(1);
         t.event().time_enabled += 1;
         t.drain(9);
         t.expect({}, {"?"});
       }},
      {83, "the last batch before a stop finds no room: LOST is not written yet",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         const std::uint64_t batch = 2560;
         for (std::uint64_t i = 0; i < 4; ++i) t.event().batch(run_of(1 + i * batch, batch));
         t.recorder->drain();  // the thread runs: the loss follows the records before it
         t.expect(numbers(1, 2 * batch), {});
         t.drain(1 + 4 * batch);
         t.expect(numbers(1, 2 * batch), {"2 batches"});
         EXPECT_EQ(t.sink.records.back().to, TraceeAddr{1 + 4 * batch});
         // LOST comes now, and reports nothing new.
         t.event().batch(run_of(1 + 4 * batch, 3));
         t.drain(4 + 4 * batch);
         t.expect(joined(numbers(1, 2 * batch), numbers(1 + 4 * batch, 3)), {"2 batches"});
       }},
      {84, "the same, by a kernel that knows no count",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr& a) {
           return (a.read_format & 16) != 0 ? EINVAL : 0;
         };
         ASSERT_TRUE(t.open());
         const std::uint64_t batch = 2560;
         for (std::uint64_t i = 0; i < 3; ++i) t.event().batch(run_of(1 + i * batch, batch));
         t.drain(1 + 3 * batch);
         t.drain(1 + 3 * batch);
         t.expect(numbers(1, 2 * batch), {"?"});
         t.event().batch(run_of(1 + 3 * batch, 3));
         t.drain(4 + 3 * batch);
         t.expect(joined(numbers(1, 2 * batch), numbers(1 + 3 * batch, 3)), {"?"});
         // Later losses are counted.
         for (std::uint64_t i = 0; i < 3; ++i) t.event().batch(run_of(4 + (3 + i) * batch, batch));
         t.recorder->drain();
         t.event().batch(run_of(4 + 6 * batch, 1));
         t.drain(5 + 6 * batch);
         EXPECT_EQ(t.sink.gaps(), (Texts{"?", "1 batches"}));
       }},
  };
}

}  // namespace backtrail::tracee::simulated
