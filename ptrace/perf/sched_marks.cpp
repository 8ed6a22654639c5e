// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/sched_marks.hpp"

#include <algorithm>
#include <ctime>

namespace backtrail::tracee {
namespace {

namespace perf = decoder::perf;
using decoder::MarkKind;

perf_event_attr attributes() {
  perf_event_attr out{};
  out.disabled = 1;
  out.exclude_kernel = 1;
  out.exclude_hv = 1;
  out.type = PERF_TYPE_SOFTWARE;
  out.config = PERF_COUNT_SW_DUMMY;
  out.context_switch = 1;
  out.sample_id_all = 1;
  out.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  out.use_clockid = 1;
  out.clockid = CLOCK_MONOTONIC;  // branch events can use this clock too
  out.watermark = 1;
  return out;
}

}  // namespace

Result<std::unique_ptr<SchedMarks>> SchedMarks::open(PerfKernel& kernel, pid_t tid,
                                                     std::uint64_t ring_bytes) {
  BT_TRY(PerfEvent event, PerfEvent::open(kernel, attributes(), tid));
  BT_CHECKED(event.map({BufferMode::kStream, ring_bytes, 0}));
  BT_CHECKED(event.enable());
  return std::unique_ptr<SchedMarks>{new SchedMarks{std::move(event)}};
}

SchedMarks::SchedMarks(PerfEvent event) : event_{std::move(event)}, ring_{event_.data()} {}

std::vector<decoder::TraceMark> SchedMarks::take() {
  std::vector<decoder::TraceMark> out;
  const std::uint64_t head = event_.data_head();
  const perf::SampleLayout layout{attributes().sample_type, true, 0};
  const auto walk = ring_.visit(tail_, head, [&](const perf::RecordView& view) {
    const auto record = perf::parse_record(view, layout);
    if (const auto* lost = std::get_if<perf::LostRecord>(&record.body)) {
      lost_ += lost->count;
    } else if (const auto* move = std::get_if<perf::SwitchRecord>(&record.body)) {
      out.push_back({.kind = !move->departs    ? MarkKind::kArrives
                             : move->preempted ? MarkKind::kPreempted
                                               : MarkKind::kDeparts,
                     .time_ns = record.sample.time.value_or(0),
                     .cpu = static_cast<std::int32_t>(record.sample.cpu.value_or(~0U)),
                     .at = {}});
    }
  });
  if (walk.broken) ++lost_;
  tail_ = head;
  event_.set_data_tail(tail_);
  return out;
}

std::uint64_t SchedMarks::lost() const {
  // The kernel counts a loss at once, but writes its record only before the next record.
  const auto times = event_.times();
  return std::max(lost_, times ? times->lost.value_or(0) : 0);
}

}  // namespace backtrail::tracee
