// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/lbr_recorder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace backtrail::tracee {
namespace {

namespace perf = decoder::perf;

struct Attempt {
  std::uint32_t type;
  std::uint64_t config;
  std::uint64_t period;
};

/// Tried in order. The first periods let stacks of 32 and 16 entries overlap; AMD's oldest unit
/// requires a period above 16.
constexpr std::array<Attempt, 5> kAttempts{{
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 15},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 17},
    {PERF_TYPE_RAW, kAmdTakenBranches, 17},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 1000},
    {PERF_TYPE_RAW, kAmdTakenBranches, 1000},
}};

perf_event_attr attributes_for(const Attempt& attempt) {
  perf_event_attr out{};
  out.disabled = 1;
  out.exclude_kernel = 1;
  out.exclude_hv = 1;
  out.watermark = 1;
  out.type = attempt.type;
  out.config = attempt.config;
  out.sample_period = attempt.period;
  out.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
  out.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
  return out;
}

}  // namespace

Result<std::unique_ptr<LbrRecorder>> LbrRecorder::open(PerfKernel& kernel, pid_t tid,
                                                       std::uint64_t ring_bytes,
                                                       decoder::InsnCache& insns,
                                                       decoder::TraceConsumer& sink) {
  Error last;
  for (const Attempt& attempt : kAttempts) {
    auto event = PerfEvent::open_mapped(kernel, attributes_for(attempt), tid,
                                        {BufferMode::kStream, ring_bytes, 0});
    if (event)
      return std::unique_ptr<LbrRecorder>{
          new LbrRecorder{std::move(*event), attempt.period, insns, sink}};
    last = event.error();
    if (last.code.value() != EINVAL) break;
  }
  return fail(last);
}

LbrRecorder::LbrRecorder(PerfEvent event, std::uint64_t period, decoder::InsnCache& insns,
                         decoder::TraceConsumer& sink)
    : event_{std::move(event)}, period_{period}, assembler_{&insns, sink}, ring_{event_.data()} {}

Result<void> LbrRecorder::start(TraceeAddr pc) {
  assembler_.start(pc);
  joiner_.lost();
  return event_.enable();
}

void LbrRecorder::take_record(const perf::RecordView& view) {
  const auto record =
      perf::parse_record(view, {PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK, false, 0});
  if (const auto* sample = std::get_if<perf::SampleRecord>(&record.body)) {
    ++samples_;
    if (apart_) joiner_.lost();
    joiner_.take(sample->branches);
  } else if (!std::holds_alternative<perf::OtherRecord>(record.body)) {
    joiner_.lost();  // lost, throttled or broken: samples are missing
  }
}

/// Returns whether the event ran whenever it was enabled.
bool LbrRecorder::saw_all() {
  const auto now = event_.times();
  const bool all = now && !now->unseen_since(times_);
  if (now) times_ = *now;
  return all;
}

void LbrRecorder::drain(std::optional<TraceeAddr> pc) {
  if (ended_) {
    // The thread runs on without its event, or has died.
    if (!pc || !std::exchange(ran_, false)) return;
    assembler_.lost({0, decoder::LossBound::kExact, decoder::GapReason::kNotRecorded});
    return assembler_.flush(pc);
  }
  ended_ = event_.dead();
  // If not, something unseen may lie between any two stacks, even if they look as if they joined.
  apart_ = !saw_all();
  const std::uint64_t head = event_.data_head();
  const auto walk =
      ring_.visit(tail_, head, [this](const perf::RecordView& view) { take_record(view); });
  if (walk.broken || apart_) joiner_.lost();
  tail_ = head;
  event_.set_data_tail(tail_);
  if (pc) {
    assembler_.lost({0, decoder::LossBound::kExact, decoder::GapReason::kNotRecorded});
    joiner_.lost();
    ran_ = false;
  }
  assembler_.flush(pc);
}

std::string LbrRecorder::statistics() const {
  return fmt::format("lbr, a sample every {} branches, {} samples, {} records, {} gaps", period_,
                     samples_, assembler_.records(), assembler_.gaps());
}

}  // namespace backtrail::tracee
