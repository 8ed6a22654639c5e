// SPDX-License-Identifier: Apache-2.0
// The kernel's answers to calls on open events: refusals, interruptions, short reads.

#include "test/unit/ptrace/perf/perf_fixture.hpp"

#include <linux/perf_event.h>
#include <poll.h>

namespace backtrail::tracee::simulated {
namespace {

constexpr std::array kControlErrnos{EINVAL, ENOTTY, EBADF, ENODEV, EACCES, EPERM, EFAULT, EINTR};
constexpr std::array kReadErrnos{EBADF, EFAULT, EINVAL, EIO, EISDIR, ENOSPC, ENODEV, ESRCH};

/// Returns a rule that makes an ioctl fail.
auto failing(unsigned long wanted, int value) {
  return [=](const test::SimulatedEvent&, unsigned long request, std::uint64_t) {
    return request == wanted ? value : 0;
  };
}

struct Way {
  bool by_area;
  BufferMode mode;
};
constexpr std::array<Way, 4> kWays{{{false, BufferMode::kStream},
                                    {false, BufferMode::kHistory},
                                    {true, BufferMode::kStream},
                                    {true, BufferMode::kHistory}}};

bool open_by(Bts& t, const Way& way) {
  return way.by_area ? t.open_aux(way.mode) : t.open(way.mode);
}

/// Makes the program take branches, which the event records if it is enabled.
void run(Bts& t, const Way& way, const Pairs& pairs) {
  t.recorder->resumed();
  if (!way.by_area) {
    t.event().batch(pairs);
  } else if (way.mode == BufferMode::kHistory) {
    t.event().snapshot_pairs(pairs);
  } else {
    t.event().aux_pairs(pairs);
  }
}

/// Makes the event stop by itself, in the way of its mode.
void stop_event(Bts& t, const Way& way) {
  if (!way.by_area) t.event().in_error = true;
  if (way.by_area && way.mode == BufferMode::kStream) {
    t.event().aux_bytes({}, decoder::perf::kAuxTruncated);
  }
}

void cannot_be_begun() {
  for (const int value : kControlErrnos) {
    for (const Way& way : kWays) {
      SimulatedPerf kernel;
      if (way.by_area) kernel.devices["intel_bts/type"] = "8";
      kernel.control_rule = failing(PERF_EVENT_IOC_ENABLE, value);
      NopCode code;
      decoder::InsnCache insns{code};
      Sink sink;
      auto opened = BtsRecorder::open(kernel, kTid, true, {way.mode, 4096, false}, insns, sink);
      ASSERT_TRUE(opened);
      const auto started = (*opened)->start(TraceeAddr{1});
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error().code.value(), value);
      EXPECT_NE(explain_perf_error(started.error()).find("ioctl"), std::string::npos);
      opened->reset();
      EXPECT_EQ(kernel.open_events(), 0U);
      EXPECT_EQ(kernel.locked(), 0U);
      EXPECT_FALSE(SchedMarks::open(kernel, kTid));
      auto lbr = LbrRecorder::open(kernel, kTid, 4096, insns, sink);
      ASSERT_TRUE(lbr);
      EXPECT_FALSE((*lbr)->start(TraceeAddr{1}));
      lbr->reset();
      kernel.devices["intel_pt/type"] = "9";
      decoder::PtRawHistory history{4096};
      auto packets = PtRecorder::open(kernel, kTid, {way.mode, 4096, false}, history);
      ASSERT_TRUE(packets);
      EXPECT_FALSE((*packets)->start());
      packets->reset();
      EXPECT_EQ(kernel.open_events(), 0U);
      EXPECT_EQ(kernel.locked(), 0U);
    }
  }
}

void cannot_be_begun_anew() {
  for (const int value : kControlErrnos) {
    for (const Way& way : kWays) {
      Bts t;
      ASSERT_TRUE(open_by(t, way));
      run(t, way, run_of(1, 3));
      stop_event(t, way);
      t.kernel.control_rule = failing(PERF_EVENT_IOC_ENABLE, value);
      t.drain(4);
      const std::size_t before = t.sink.gaps().size();
      run(t, way, run_of(4, 5));
      t.drain(9);
      // One gap per run, which ends at the thread's pc.
      EXPECT_EQ(t.sink.gaps().size(), before + 1);
      EXPECT_EQ(t.sink.records.back().to, TraceeAddr{9});
      t.drain(9);
      EXPECT_LE(t.sink.gaps().size(), before + 2);
      t.kernel.control_rule = {};
      t.drain(9);
      const std::size_t healed = t.sink.gaps().size();
      run(t, way, run_of(9, 3));
      t.drain(12);
      EXPECT_EQ(t.sink.branches(), joined(numbers(1, 3), numbers(9, 3)));
      EXPECT_EQ(t.sink.gaps().size(), healed);
      EXPECT_FALSE(t.recorder->ended());
    }
  }
}

void packets_cannot_be_begun_anew() {
  for (const BufferMode mode : {BufferMode::kStream, BufferMode::kHistory}) {
    Pt t;
    ASSERT_TRUE(t.open(mode));
    const auto write = [&] {
      t.recorder->resumed();
      mode == BufferMode::kStream ? t.event().aux_bytes(psb_and(2))
                                  : t.event().snapshot_bytes(psb_and(2));
    };
    write();
    t.kernel.control_rule = failing(PERF_EVENT_IOC_ENABLE, EACCES);
    t.event().aux_bytes({}, mode == BufferMode::kStream ? decoder::perf::kAuxTruncated : 0);
    t.recorder->drain();
    write();
    t.recorder->drain();
    EXPECT_EQ(ovfs(t.history.read_all()), 1U);
    write();
    t.kernel.control_rule = {};
    t.recorder->drain(false);
    write();
    t.recorder->drain();
    const auto bytes = t.history.read_all();
    EXPECT_EQ(ovfs(bytes), 1U);
    EXPECT_EQ(decoder::count_packets(bytes).of(decoder::PtKind::kPsb), 2U);
    // The hole precedes the packets that came after it.
    auto last = psb_and(2);
    ASSERT_GT(bytes.size(), last.size() + 2);
    last.insert(last.begin(), {0x02, 0xf3});
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), bytes.rbegin()));
  }
}

void a_twin_cannot_be_begun() {
  Bts t;
  t.kernel.devices["cpu_core/type"] = "4";
  t.kernel.devices["cpu_atom/type"] = "10";
  t.kernel.control_rule = [](const test::SimulatedEvent& event, unsigned long request,
                             std::uint64_t) {
    return request == PERF_EVENT_IOC_ENABLE && event.attr.config >> 32U == 10 ? ENODEV : 0;
  };
  auto opened =
      BtsRecorder::open(t.kernel, kTid, true, {BufferMode::kStream, 4096, false}, t.insns, t.sink);
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->start(TraceeAddr{1}).error().code.value(), ENODEV);
}

void a_change_cannot_be_begun() {
  for (const bool by_area : {false, true}) {
    Bts t;
    const Way way{by_area, BufferMode::kHistory};
    ASSERT_TRUE(open_by(t, way));
    t.kernel.control_rule = failing(PERF_EVENT_IOC_ENABLE, EACCES);
    EXPECT_EQ(t.recorder->stream().error().code.value(), EACCES);
    const Way now{by_area, BufferMode::kStream};
    run(t, now, run_of(1, 3));
    t.drain(4);
    EXPECT_EQ(t.sink.gaps().size(), 1U);
    Sink whole;
    if (by_area) {
      EXPECT_FALSE(t.recorder->see_kernel(whole));
    }
    t.kernel.control_rule = {};
    if (by_area) {
      EXPECT_TRUE(t.recorder->see_kernel(whole));
    }
    t.drain(4);
    run(t, now, run_of(4, 3));
    t.drain(7);
    EXPECT_EQ(t.sink.branches(), numbers(4, 3));
    EXPECT_EQ(whole.branches(), by_area ? numbers(4, 3) : numbers(4, 0));
  }
}

void cannot_be_stopped() {
  Bts t;
  const Way way{true, BufferMode::kHistory};
  ASSERT_TRUE(open_by(t, way));
  t.kernel.control_rule = failing(PERF_EVENT_IOC_DISABLE, EACCES);
  run(t, way, run_of(1, 3));
  t.recorder->drain();
  EXPECT_TRUE(t.sink.branches().empty());  // the hardware may still be writing
  t.drain(4);
  t.expect(numbers(1, 3), {});
  Pt pt;
  ASSERT_TRUE(pt.open(BufferMode::kHistory));
  pt.kernel.control_rule = t.kernel.control_rule;
  pt.event().snapshot_bytes(psb_and(3));
  pt.recorder->drain(false);
  EXPECT_TRUE(pt.history.read_all().empty());
  pt.recorder->drain();
  EXPECT_EQ(pt.history.read_all(), psb_and(3));
}

void output_stays_paused() {
  for (const bool counts : {true, false}) {
    Bts t;
    if (!counts) {
      t.kernel.open_rule = [](const perf_event_attr& a) {
        return (a.read_format & 16) != 0 ? EINVAL : 0;
      };
    }
    const Way way{false, BufferMode::kHistory};
    ASSERT_TRUE(open_by(t, way));
    run(t, way, run_of(1, 3));
    t.kernel.control_rule = [](const test::SimulatedEvent&, unsigned long request,
                               std::uint64_t on) {
      return request == PERF_EVENT_IOC_PAUSE_OUTPUT && on == 0 ? EINVAL : 0;
    };
    t.drain(4);
    t.expect(numbers(1, 3), {});
    run(t, way, run_of(4, 3));
    t.drain(7);
    EXPECT_EQ(t.sink.gaps().size(), 1U);
    t.kernel.control_rule = {};
    t.drain(7);
    const std::size_t gaps = t.sink.gaps().size();
    run(t, way, run_of(7, 3));
    t.drain(10);
    EXPECT_EQ(t.sink.branches(), joined(numbers(1, 3), numbers(7, 3)));
    EXPECT_LE(t.sink.gaps().size(), gaps + (counts ? 0 : 1));
  }
}

void cannot_be_read() {
  for (const int value : kReadErrnos) {
    for (const Way& way : kWays) {
      Bts t;
      ASSERT_TRUE(open_by(t, way));
      run(t, way, run_of(1, 3));
      t.kernel.read_errno = value;
      t.drain(4);
      // Whether the event ran all the time is unknown.
      t.expect(numbers(1, 3), {"?"});
      t.kernel.read_errno = 0;
      run(t, way, run_of(4, 3));
      t.drain(7);
      t.expect(numbers(1, 6), {"?"});
    }
    Pt pt;
    ASSERT_TRUE(pt.open());
    pt.event().aux_bytes(psb_and(3));
    pt.kernel.read_errno = value;
    pt.recorder->drain();
    EXPECT_EQ(ovfs(pt.history.read_all()), 1U);
    Lbr lbr;
    lbr.sample({{2, 3, 0}, {1, 2, 0}});
    lbr.recorder->drain();
    lbr.kernel.read_errno = value;
    lbr.recorder->drain();
    lbr.kernel.read_errno = 0;
    lbr.sample({{3, 4, 0}, {2, 3, 0}});
    lbr.recorder->drain();
    EXPECT_EQ(lbr.sink.gaps().size(), 2U);
    SimulatedPerf kernel;
    auto marks = SchedMarks::open(kernel, kTid);
    ASSERT_TRUE(marks);
    kernel.last().write(RecordType::kLost, 0, {1, 5, 0, 0, 0});
    kernel.read_errno = value;
    EXPECT_TRUE((*marks)->take().empty());
    EXPECT_EQ((*marks)->lost(), 5U);
  }
}

void is_read_in_part() {
  for (const std::size_t words : {1U, 2U}) {
    Bts t;
    ASSERT_TRUE(t.open());
    t.event().batch(run_of(1, 3));
    t.kernel.read_words = words;
    t.drain(4);
    t.expect(numbers(1, 3), {"?"});
    t.kernel.read_words = 4;
    t.event().batch(run_of(4, 3));
    t.drain(7);
    t.expect(numbers(1, 6), {"?"});
  }
}

void polls_are_interrupted() {
  Bts t;
  ASSERT_TRUE(t.open());
  t.event().batch(run_of(1, 3));
  t.kernel.poll_errors = {EINTR, EINTR, EINTR};
  t.drain(4);
  EXPECT_FALSE(t.recorder->ended());
  t.event().batch(run_of(4, 3));
  t.drain(7);
  t.expect(numbers(1, 6), {});
}

void polls_fail() {
  for (const int value : {ENOMEM, EFAULT, EINVAL}) {
    Bts t;
    ASSERT_TRUE(t.open());
    t.event().batch(run_of(1, 3));
    t.kernel.poll_errors = {value};
    t.drain(4);
    // An event that cannot be queried counts as dead, and later branches are reported as missing.
    EXPECT_TRUE(t.recorder->ended());
    t.recorder->resumed();
    t.drain(9);
    t.expect(numbers(1, 3), {"unrecorded"});
  }
  // An event whose queries are interrupted for ever counts as dead, too.
  Bts t;
  ASSERT_TRUE(t.open());
  t.kernel.poll_errors.assign(1000, EINTR);
  t.drain(1);
  EXPECT_TRUE(t.recorder->ended());
}

void packets_unit_was_taken() {
  Pt t;
  ASSERT_TRUE(t.open());
  t.event().aux_bytes(psb_and(3));
  t.recorder->drain();
  t.event().in_error = true;
  EXPECT_NE(t.kernel.poll(t.event().fd).value_or(0) & POLLERR, 0);
  t.recorder->resumed();
  t.recorder->drain();
  EXPECT_FALSE(t.recorder->ended());
  EXPECT_FALSE(t.event().in_error);
  EXPECT_EQ(ovfs(t.history.read_all()), 1U);
  t.event().aux_bytes(psb_and(3));
  t.recorder->drain();
  EXPECT_EQ(ovfs(t.history.read_all()), 1U);
}

}  // namespace

std::vector<Case> call_cases() {
  return {
      {86, "refuses to enable an event at the beginning", cannot_be_begun},
      {87, "refuses to enable an event that it disabled", cannot_be_begun_anew},
      {88, "does so with packets", packets_cannot_be_begun_anew},
      {89, "refuses to enable one kind of core's event", a_twin_cannot_be_begun},
      {90, "refuses to enable what was opened anew", a_change_cannot_be_begun},
      {91, "refuses to disable an event before it is read", cannot_be_stopped},
      {92, "refuses to go on with output that was paused", output_stays_paused},
      {93, "refuses to read an event's times", cannot_be_read},
      {94, "gives a part of an event's times", is_read_in_part},
      {95, "interrupts a poll", polls_are_interrupted},
      {96, "fails a poll", polls_fail},
      {97, "takes the unit from a pinned event of packets, and poll says POLLERR",
       packets_unit_was_taken},
  };
}

}  // namespace backtrail::tracee::simulated
