// SPDX-License-Identifier: Apache-2.0
// Misbehaviours of the kernel when events are opened and mapped.

#include "test/unit/ptrace/perf/perf_fixture.hpp"

namespace backtrail::tracee::simulated {

std::vector<Case> open_cases() {
  return {
      {27, "another vendor's driver takes the request for a plain sampler",
       [] {
         Bts foreign;
         EXPECT_FALSE(foreign.open(BufferMode::kStream, 4096, false, false));
         EXPECT_TRUE(foreign.error.is(TraceErrc::kUnsupported));
         Bts sampler;
         ASSERT_TRUE(sampler.open());
         sampler.event().sample(5, 0);
         sampler.drain(9);
         EXPECT_TRUE(sampler.recorder->not_bts());
         Bts throttled;
         ASSERT_TRUE(throttled.open());
         throttled.event().write(RecordType::kThrottle, 0, {1, 2, 3});
         throttled.drain(1);
         EXPECT_TRUE(throttled.recorder->not_bts());
       }},
      {28, "a period of 1 is too small for the model; the other unit takes it",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr& a) {
           return a.type == PERF_TYPE_HARDWARE ? EINVAL : 0;
         };
         EXPECT_TRUE(t.open_aux());
         Bts none;
         none.kernel.open_rule = [](const perf_event_attr&) { return EINVAL; };
         EXPECT_FALSE(none.open());
       }},
      {29, "intel_bts is not for plain users",
       [] {
         Bts t;
         t.kernel.devices["intel_bts/type"] = "8";
         t.kernel.open_rule = [](const perf_event_attr& a) { return a.type == 8 ? EACCES : 0; };
         ASSERT_TRUE(t.open());
         EXPECT_FALSE(t.recorder->uses_aux());
       }},
      {30, "intel_bts is missing",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         EXPECT_FALSE(t.recorder->uses_aux());
       }},
      {31, "the unit is busy, once or for good",
       [] {
         Bts once;
         once.kernel.open_errors = {EBUSY};
         EXPECT_TRUE(once.open());
         Bts always;
         always.kernel.devices["intel_bts/type"] = "8";
         always.kernel.open_rule = [](const perf_event_attr& a) {
           return a.type == 8 ? EBUSY : EOPNOTSUPP;
         };
         EXPECT_FALSE(always.open());
         EXPECT_EQ(always.error.code.value(), EBUSY);
         EXPECT_NE(explain_perf_error(always.error).find("in use by"), std::string::npos);
       }},
      {48, "a snapshot area is too large or memory too scattered",
       [] {
         Bts t;
         t.kernel.largest_area = 8192;
         t.kernel.area_errno = ENOMEM;
         ASSERT_TRUE(t.open_aux(BufferMode::kHistory, 1U << 20U));
         EXPECT_EQ(t.recorder->event().aux().size(), 8192U);
         Bts none;
         none.kernel.devices["intel_bts/type"] = "8";
         none.kernel.largest_area = 0;
         none.kernel.area_errno = ENOMEM;
         ASSERT_TRUE(none.open(BufferMode::kHistory, 1U << 20U));
         EXPECT_FALSE(none.recorder->uses_aux());
       }},
      {49, "the user's other processes have used up the locked memory",
       [] {
         Bts t;
         t.kernel.largest_ring = 8 * 4096;
         ASSERT_TRUE(t.open(BufferMode::kStream, 1U << 20U));
         EXPECT_EQ(t.recorder->event().data().size(), 4 * 4096U);
         Bts none;
         none.kernel.map_errno = EPERM;
         EXPECT_FALSE(none.open());
         EXPECT_NE(explain_perf_error(none.error).find("ulimit -l"), std::string::npos);
         EXPECT_EQ(none.kernel.open_events(), 0U);
         // The ring is granted, but the area is not.
         Pt half;
         half.kernel.locked_budget = 2 * 4096;
         EXPECT_FALSE(half.open(BufferMode::kStream, 1U << 20U));
         EXPECT_EQ(half.kernel.open_events(), 0U);
         EXPECT_EQ(half.kernel.locked(), 0U);
         half.kernel.locked_budget = 3 * 4096;
         EXPECT_TRUE(half.open(BufferMode::kStream, 1U << 20U));
       }},
      {55, "a new thread ran before its event was opened",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         t.event().sample(70, 71);
         t.drain(71);
         // The trace says where it begins; no record precedes that.
         EXPECT_EQ(t.sink.records[0].reason, GapReason::kStart);
         t.expect({70}, {});
       }},
      {56, "the thread dies before its event opens",
       [] {
         Bts t;
         t.kernel.open_errors = {ESRCH};
         EXPECT_FALSE(t.open());
         EXPECT_TRUE(t.error.is(TraceErrc::kTraceeGone));
         // The other way is not tried then.
         Bts area;
         area.kernel.devices["intel_bts/type"] = "8";
         area.kernel.open_errors = {ESRCH, 0};
         EXPECT_FALSE(area.open());
         EXPECT_EQ(area.kernel.opened.size(), 1U);
       }},
      {57, "the kernel's attribute is smaller",
       [] {
         Bts t;
         t.kernel.attribute_size = PERF_ATTR_SIZE_VER5;
         ASSERT_TRUE(t.open());
         EXPECT_EQ(t.kernel.opened.back().size, static_cast<unsigned>(PERF_ATTR_SIZE_VER5));
       }},
      {58, "seccomp forbids everything",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr&) { return EPERM; };
         EXPECT_FALSE(t.open());
         EXPECT_NE(explain_perf_error(t.error).find("seccomp"), std::string::npos);
       }},
      {69, "no event is shared between threads or inherited",
       [] {
         Bts t;
         ASSERT_TRUE(t.open());
         EXPECT_EQ(t.kernel.opened.back().inherit, 0U);
         EXPECT_EQ(t.kernel.open_events(), 1U);
         auto other = BtsRecorder::open(t.kernel, kTid + 1, true,
                                        {BufferMode::kStream, 4096, false}, t.insns, t.sink);
         ASSERT_TRUE(other);
         ASSERT_EQ(t.kernel.open_events(), 2U);
         test::SimulatedEvent& first = t.kernel.event(0);
         test::SimulatedEvent& second = t.kernel.event(1);
         EXPECT_NE(first.tid, second.tid);
         EXPECT_FALSE(second.output_of);
         EXPECT_NE(first.memory.data(), second.memory.data());
         // The simulation refuses the same calls as the kernel.
         EXPECT_FALSE(t.kernel.control(second.fd, PERF_EVENT_IOC_SET_OUTPUT,
                                       static_cast<unsigned>(first.fd)));
         perf_event_attr inherited = first.attr;
         inherited.inherit = 1;
         auto event = PerfEvent::open(t.kernel, inherited, kTid);
         ASSERT_TRUE(event);
         EXPECT_EQ(event->pause_output(true).error().code.value(), EINVAL);
         EXPECT_EQ(event->map({BufferMode::kStream, 4096, 0}).error().code.value(), EINVAL);
       }},
      {70, "no descriptor is left for this thread",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr&) { return EMFILE; };
         EXPECT_FALSE(t.open());
         EXPECT_NE(explain_perf_error(t.error).find("ulimit -n"), std::string::npos);
       }},
      {71, "a CPU went offline",
       [] {
         Bts t;
         t.kernel.open_rule = [](const perf_event_attr&) { return ENODEV; };
         EXPECT_FALSE(t.open());
         EXPECT_NE(explain_perf_error(t.error).find("offline"), std::string::npos);
       }},
      {74, "open is interrupted by a signal",
       [] {
         Bts t;
         t.kernel.open_errors = {EINTR, EINTR, EINTR};
         EXPECT_TRUE(t.open());
       }},
      {75, "every other errno of open ends cleanly",
       [] {
         for (const int value :
              {ENOENT, EOPNOTSUPP, EACCES, EPERM, EBUSY, EINVAL, ENODEV, ESRCH, E2BIG, EMFILE,
               ENFILE, ENOMEM, EFAULT, EBADF, EOVERFLOW, ENOSPC, ENOSYS}) {
           Bts t;
           t.kernel.open_rule = [value](const perf_event_attr&) { return value; };
           EXPECT_FALSE(t.open());
           EXPECT_FALSE(explain_perf_error(t.error).empty());
           EXPECT_EQ(t.kernel.open_events(), 0U);
           Bts mapped;
           mapped.kernel.map_errno = value;
           EXPECT_FALSE(mapped.open());
           EXPECT_EQ(mapped.kernel.open_events(), 0U);
         }
       }},
  };
}

}  // namespace backtrail::tracee::simulated
