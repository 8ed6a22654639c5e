// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/pt_recorder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace backtrail::tracee {
namespace {

namespace perf = decoder::perf;

constexpr std::uint64_t kAuxRingBytes = 4UL * 4096;
/// Configs of the intel_pt unit, tried in order until the kernel accepts one. The two bits only
/// state the defaults explicitly.
constexpr std::array<std::uint64_t, 2> kConfigs{(1U << 0U) | (1U << 13U), 0};

Result<PerfEvent> open_event(PerfKernel& kernel, pid_t tid, const RecorderOptions& options) {
  const auto type = pmu_type(kernel, "intel_pt");
  if (!type) return fail(TraceErrc::kUnsupported, "the kernel offers no intel_pt");
  perf_event_attr attributes{};
  attributes.type = *type;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.watermark = 1;
  Error last;
  for (const std::uint64_t config : kConfigs) {
    attributes.config = config;
    auto event = PerfEvent::open_mapped(
        kernel, attributes, tid,
        {options.mode, kAuxRingBytes, std::max<std::uint64_t>(options.size_bytes, 1)});
    if (event) return event;
    last = event.error();
    if (last.code.value() != EINVAL) break;
  }
  return fail(last);
}

}  // namespace

Result<std::unique_ptr<PtRecorder>> PtRecorder::open(PerfKernel& kernel, pid_t tid,
                                                     const RecorderOptions& options,
                                                     decoder::PtPacketConsumer& packets) {
  BT_TRY(PerfEvent event, open_event(kernel, tid, options));
  return std::unique_ptr<PtRecorder>{new PtRecorder{std::move(event), tid, options, packets}};
}

PtRecorder::PtRecorder(PerfEvent event, pid_t tid, const RecorderOptions& options,
                       decoder::PtPacketConsumer& packets)
    : tid_{tid}, packets_{packets} {
  use(std::move(event), options);
}

void PtRecorder::use(PerfEvent event, const RecorderOptions& options) {
  options_ = options;
  event_.emplace(std::move(event));
  ring_.emplace(event_->data());
  aux_ = perf::AuxCursor{event_->aux().size()};
  snapshot_ = perf::SnapshotReader{1};
  tail_ = 0;
  times_ = {};
}

Result<void> PtRecorder::stream(std::uint64_t size_bytes) {
  if (options_.mode == BufferMode::kStream || ended_) return {};
  PerfKernel& kernel = event_->kernel();
  RecorderOptions wanted = options_;
  wanted.mode = BufferMode::kStream;
  wanted.size_bytes = std::max(wanted.size_bytes, size_bytes);
  auto other = reopen(event_, options_, wanted, [&](const RecorderOptions& options) {
    return open_event(kernel, tid_, options);
  });
  ended_ = !other.event;
  if (ended_) return other.said;
  use(std::move(*other.event), other.options);
  BT_CHECKED(turn_on());
  return other.said;
}

Result<void> PtRecorder::turn_on() {
  auto on = event_->enable();
  off_ = !on;
  return on;
}

void PtRecorder::lose() {
  ++holes_;
  packets_.hole();
}

void PtRecorder::drain_ring() {
  const std::uint64_t head = event_->data_head();
  if (ring_->had_no_room(tail_, head, perf::kLargestAuxRecordBytes)) aux_.ring_lost();
  const auto walk = ring_->visit(tail_, head, [this](const perf::RecordView& view) {
    const auto record = perf::parse_record(view, {});
    if (const auto* aux = std::get_if<perf::AuxRecord>(&record.body)) {
      if (event_->mode() == BufferMode::kStream) aux_.add(*aux);
    } else if (std::holds_alternative<perf::LostRecord>(record.body)) {
      aux_.ring_lost();
    }
  });
  if (walk.broken) aux_.ring_lost();
  tail_ = head;
  event_->set_data_tail(tail_);
}

bool PtRecorder::drain_stream() {
  const std::uint64_t head = event_->aux_head();
  drain_ring();
  bool restart = false;
  for (const perf::AuxPiece& piece : aux_.take(head)) {
    // Bytes without an AUX record may follow a truncation that no packet shows, and the event may
    // be disabled.
    if (!piece.described) hole_ = restart = true;
    if (std::exchange(hole_, false)) lose();
    packets_.append(perf::copy_piece(event_->aux(), piece.offset, piece.size));
    bytes_ += piece.size;
    hole_ = piece.truncated() || piece.has_holes();
    restart = restart || piece.truncated();
  }
  event_->set_aux_tail(aux_.tail());
  return restart;
}

bool PtRecorder::drain_snapshot(bool stopped) {
  // Bytes that the hardware is still writing are torn; leave them for a later drain.
  if (!event_->disable() && !stopped) return false;
  drain_ring();
  const auto news = snapshot_.look(event_->aux(), event_->aux_head());
  if (news.lost) {
    // The new bytes begin in the middle of a packet, and the bytes before them do not join.
    packets_.clear();
    hole_ = false;
  }
  if (std::exchange(hole_, false)) lose();
  packets_.append(news.bytes);
  bytes_ += news.bytes.size();
  return true;
}

void PtRecorder::drain(bool stopped) {
  if (ended_) {
    // The thread runs on without its event.
    if (stopped && std::exchange(going_, false)) lose();
    return;
  }
  // This gap precedes everything that this drain reads.
  if (off_ && going_) hole_ = true;
  const bool dead = event_->dead();
  const std::uint64_t before = bytes_;
  bool restart =
      event_->mode() == BufferMode::kStream ? drain_stream() : drain_snapshot(stopped || dead);
  if (const auto now = event_->times()) {
    const bool unseen = now->unseen_since(times_);
    // A thread that was only resumed may still be waiting for a CPU.
    const bool silent = stopped && ran_ && bytes_ == before && now->enabled == times_.enabled;
    if (unseen || now->in_error || (silent && !restart && !off_)) hole_ = true;
    restart = restart || silent || now->in_error;
    if (now->enabled != times_.enabled) ran_ = false;
    if (!now->in_error) times_ = *now;
  } else {
    hole_ = true;  // on failure it is unknown what the event missed
  }
  if (stopped || bytes_ != before) ran_ = false;
  if (stopped) going_ = false;
  // Reported at once, because the program may be inspected now.
  if (std::exchange(hole_, false)) lose();
  ended_ = dead;
  if ((restart || off_) && !ended_) (void)turn_on();
}

std::string PtRecorder::statistics() const {
  return fmt::format("perf-pt, {} KiB, {} bytes, {} gaps", event_ ? event_->aux().size() / 1024 : 0,
                     bytes_, holes_);
}

}  // namespace backtrail::tracee
