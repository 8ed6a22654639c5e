// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/bts_recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "arch/base/bytes.hpp"

namespace backtrail::tracee {
namespace {

using decoder::LossBound;
using decoder::MarkKind;
using decoder::TraceMark;
namespace perf = decoder::perf;

/// The kernel writes its whole buffer to the ring or drops all of it, so a ring that is never
/// overwritten must have room for one whole buffer.
constexpr std::uint64_t kLeastRingBytes = 32UL * 4096;
/// Size of the ring beside an AUX area. It holds only records about the area.
constexpr std::uint64_t kAuxRingBytes = 4UL * 4096;
/// Largest amount that the kernel writes at once, with times: the CPU's full buffer, preceded by a
/// LOST record.
constexpr std::uint64_t kLargestBatchBytes = 2730UL * 32 + 40;
/// Size of a sample with IP and ADDR, or of a LOST record without a trailer.
constexpr std::uint64_t kHistoryRecordBytes = 24;

perf_event_attr attributes_for(const RecorderOptions& options) {
  perf_event_attr out{};
  out.disabled = 1;
  out.exclude_kernel = options.kernel ? 0 : 1;
  out.exclude_hv = 1;
  // Two users of one unit would silently take turns; a pinned event fails visibly.
  out.pinned = 1;
  out.watermark = 1;
  if (options.marks && options.mode == BufferMode::kStream) {
    out.context_switch = 1;
    out.sample_id_all = 1;
    out.sample_type = PERF_SAMPLE_TIME;
    out.use_clockid = 1;
    out.clockid = CLOCK_MONOTONIC;
  }
  return out;
}

perf_event_attr aux_attributes(const RecorderOptions& options, std::uint32_t type) {
  perf_event_attr out = attributes_for(options);
  out.type = type;
  out.sample_period = 1;
  return out;
}

/// Returns how much a refusal tells the user: the higher, the more.
int weight(const Error& error) {
  switch (error.code.value()) {
    case EBUSY:
      return 4;
    case EMFILE:
    case ENOMEM:
      return 3;
    case EACCES:
    case EPERM:
      return 2;
    default:
      return 1;
  }
}

/// Opens an event with a data ring, or with the AUX area of the intel_bts unit if its PMU type is
/// given in `area_unit`.
Result<PerfEvent> open_event(PerfKernel& kernel, pid_t tid, const RecorderOptions& options,
                             std::optional<std::uint32_t> area_unit) {
  if (area_unit) {
    return PerfEvent::open_mapped(kernel, aux_attributes(options, *area_unit), tid,
                                  {options.mode, kAuxRingBytes, options.size_bytes});
  }
  const std::uint64_t least = options.mode == BufferMode::kStream ? kLeastRingBytes : 1;
  return PerfEvent::open_mapped(kernel, bts_ring_attributes(options), tid,
                                {options.mode, std::max(options.size_bytes, least), 0});
}

}  // namespace

perf_event_attr bts_ring_attributes(const RecorderOptions& options) {
  perf_event_attr out = attributes_for(options);
  out.type = PERF_TYPE_HARDWARE;
  out.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
  out.sample_period = 1;
  out.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
  return out;
}

Result<std::unique_ptr<BtsRecorder>> BtsRecorder::open(PerfKernel& kernel, pid_t tid,
                                                       bool cpu_has_bts,
                                                       const RecorderOptions& options,
                                                       decoder::InsnCache& insns,
                                                       decoder::TraceConsumer& sink) {
  if (!cpu_has_bts) return fail(TraceErrc::kUnsupported, "the CPU has no BTS");
  std::optional<Error> refusal;
  if (const auto type = pmu_type(kernel, "intel_bts")) {
    auto event = open_event(kernel, tid, options, type);
    if (event)
      return std::unique_ptr<BtsRecorder>{
          new BtsRecorder{std::move(*event), tid, options, true, insns, sink}};
    if (event.error().is(TraceErrc::kTraceeGone)) return fail(event.error());
    refusal = event.error();
  }
  auto event = open_event(kernel, tid, options, std::nullopt);
  if (event)
    return std::unique_ptr<BtsRecorder>{
        new BtsRecorder{std::move(*event), tid, options, false, insns, sink}};
  if (refusal && weight(*refusal) > weight(event.error())) return fail(*refusal);
  return fail(event.error());
}

BtsRecorder::BtsRecorder(PerfEvent event, pid_t tid, const RecorderOptions& options, bool by_aux,
                         decoder::InsnCache& insns, decoder::TraceConsumer& sink)
    : tid_{tid},
      filter_{insns, sink},
      // Only AUX records contain the kernel's branches; the data ring omits them without a sign.
      assembler_{&insns, by_aux ? sink : static_cast<decoder::TraceConsumer&>(filter_)} {
  if (by_aux) aux_.emplace(0);
  use(std::move(event), options);
}

/// Takes over a new event and resets all state that counts from an event's beginning.
void BtsRecorder::use(PerfEvent event, const RecorderOptions& options) {
  options_ = options;
  event_.emplace(std::move(event));
  ring_.emplace(event_->data());
  if (aux_) aux_.emplace(event_->aux().size());
  snapshot_ = perf::SnapshotReader{perf::kBtsRecordBytes};
  tail_ = 0;
  history_head_ = 0;
  times_ = {};
  losses_ = {};
  const perf_event_attr attributes =
      aux_ ? aux_attributes(options, 0) : bts_ring_attributes(options);
  layout_ = {attributes.sample_type, attributes.sample_id_all != 0, 0};
}

Result<void> BtsRecorder::change(const RecorderOptions& wanted) {
  PerfKernel& kernel = event_->kernel();
  const auto unit = aux_ ? pmu_type(kernel, "intel_bts") : std::nullopt;
  auto other = reopen(event_, options_, wanted, [&](const RecorderOptions& options) {
    return open_event(kernel, tid_, options, unit);
  });
  ended_ = !other.event;
  if (ended_) return other.said;
  use(std::move(*other.event), other.options);
  BT_CHECKED(turn_on());
  return other.said;
}

Result<void> BtsRecorder::stream(std::uint64_t size_bytes) {
  if (options_.mode == BufferMode::kStream || ended_) return {};
  RecorderOptions wanted = options_;
  wanted.mode = BufferMode::kStream;
  wanted.size_bytes = std::max(wanted.size_bytes, size_bytes);
  return change(wanted);
}

Result<void> BtsRecorder::see_kernel(decoder::TraceConsumer& whole) {
  if (!aux_ || ended_) {
    return fail(errno_error(EOPNOTSUPP, "the kernel's branches: only the intel_bts unit has them"));
  }
  if (options_.kernel && assembler_.has_whole()) return {};
  RecorderOptions wanted = options_;
  wanted.kernel = true;
  BT_CHECKED(change(wanted));
  assembler_.add_whole(whole);
  return {};
}

Result<void> BtsRecorder::start(TraceeAddr pc) {
  assembler_.start(pc);
  return turn_on();
}

void BtsRecorder::take_pair(std::uint64_t from, std::uint64_t to) {
  // A plain sampler reports no target.
  if (to == 0 && from != 0) not_bts_ = true;
  if (not_bts_) return;
  ++pairs_;
  assembler_.pair(from, to);
}

void BtsRecorder::take_switch(const perf::ParsedRecord& record, bool departs, bool preempted) {
  hand_out_departure();
  const TraceMark mark{.kind = !departs    ? MarkKind::kArrives
                               : preempted ? MarkKind::kPreempted
                                           : MarkKind::kDeparts,
                       .time_ns = record.sample.time.value_or(0),
                       .cpu = static_cast<std::int32_t>(record.sample.cpu.value_or(~0U)),
                       .at = {}};
  // The kernel notes the departure first and empties the CPU's buffer afterwards, so records up to
  // the next arrival happened before the departure.
  if (departs) {
    departure_ = mark;
  } else {
    assembler_.mark(mark);
  }
}

void BtsRecorder::hand_out_departure() {
  if (departure_) assembler_.mark(*departure_);
  departure_.reset();
}

void BtsRecorder::take_record(const perf::RecordView& view) {
  if (const auto pair = perf::plain_sample(view, layout_)) {
    news_ = true;
    take_pair(pair->first, pair->second);
    return;
  }
  const perf::ParsedRecord record = perf::parse_record(view, layout_);
  if (const auto* sample = std::get_if<perf::SampleRecord>(&record.body)) {
    news_ = true;
    take_pair(sample->ip, sample->addr);
  } else if (const auto* lost = std::get_if<perf::LostRecord>(&record.body)) {
    losses_.seen += lost->count;
    if (aux_) {
      aux_->ring_lost();
    } else {
      if (losses_.supposed) losses_.told = losses_.seen;
      note_lost(losses_.seen);
    }
  } else if (const auto* dropped = std::get_if<perf::LostSamplesRecord>(&record.body)) {
    assembler_.lost({dropped->count, LossBound::kExact});
  } else if (const auto* aux = std::get_if<perf::AuxRecord>(&record.body)) {
    if (aux_ && event_->mode() == BufferMode::kStream) aux_->add(*aux);
  } else if (const auto* move = std::get_if<perf::SwitchRecord>(&record.body)) {
    take_switch(record, move->departs, move->preempted);
  } else if (std::holds_alternative<perf::ThrottleRecord>(record.body)) {
    not_bts_ = not_bts_ || !aux_;  // BTS is never throttled
  } else if (std::holds_alternative<perf::BrokenRecord>(record.body)) {
    assembler_.lost({});
  }
}

/// Adds a gap so that `batches` lost batches have been reported in all.
void BtsRecorder::note_lost(std::uint64_t batches) {
  if (batches <= losses_.told) return;
  assembler_.lost({batches - losses_.told, LossBound::kBatches});
  losses_.told = batches;
}

/// Reports losses after the newest record. The kernel itself reports them only before the next
/// record.
void BtsRecorder::tell_lost_at_the_end() {
  if (aux_) return;
  if (event_->counts_lost()) {
    note_lost(times_.lost.value_or(0));
  } else if (std::exchange(losses_.crowded, false)) {
    assembler_.lost({});
    losses_.supposed = true;
  }
}

void BtsRecorder::drain_ring() {
  const std::uint64_t head = event_->data_head();
  if (aux_ && ring_->had_no_room(tail_, head, perf::kLargestAuxRecordBytes)) aux_->ring_lost();
  // In a ring that cannot hold a whole batch, the absence of LOST records proves nothing.
  if (head != tail_ || going_)
    losses_.crowded =
        (losses_.crowded && head == tail_) || ring_->had_no_room(tail_, head, kLargestBatchBytes);
  const auto walk =
      ring_->visit(tail_, head, [this](const perf::RecordView& view) { take_record(view); });
  // Any part of the area left without a record then becomes a gap in its place.
  if (walk.broken) aux_ ? aux_->ring_lost() : assembler_.lost({});
  if (head != tail_) losses_.supposed = false;
  tail_ = head;
  event_->set_data_tail(tail_);
}

/// The ring is written forward. A backward ring would hold the batches newest first but the records
/// of each batch oldest first, without marking where a batch ends.
void BtsRecorder::drain_history(bool stopped) {
  const bool paused = event_->pause_output(true).has_value();
  const std::uint64_t head = event_->data_head();
  const std::uint64_t fresh = head - history_head_;
  std::vector<std::uint8_t> bytes(std::min(fresh, ring_->size()));
  ring_->copy(head - bytes.size(), bytes);
  // A running thread may be writing a batch that the head does not include yet.
  const std::uint64_t writing = event_->data_head() - head + (stopped ? 0 : kLargestBatchBytes);
  if (paused && !event_->pause_output(false)) paused_ = restart_ = true;
  const std::uint64_t room = ring_->size() - std::min(ring_->size(), writing);
  if (fresh > room && !stopped) return;  // The records wait for a stop.
  std::uint64_t kept = fresh;
  if (fresh > room) {
    // Counted from the newest record, because the oldest may be torn: all have one size.
    kept = room / kHistoryRecordBytes * kHistoryRecordBytes;
    assembler_.lost({(fresh - kept) / kHistoryRecordBytes, LossBound::kExact});
  }
  const auto walk = perf::walk_records(std::span{bytes}.last(kept),
                                       [this](const auto& view) { take_record(view); });
  if (walk.broken) assembler_.lost({});
  history_head_ = head;
}

void BtsRecorder::take_piece(const perf::AuxPiece& piece) {
  std::uint64_t offset = piece.offset;
  std::uint64_t size = piece.size;
  if (size != 0) news_ = true;
  if (!piece.described && size != 0) {
    // These bytes lack the records that describe them: they contain a loss and perhaps padding. BTS
    // records are aligned to their size from the start of the area. The missing record may have
    // reported that the event was disabled.
    assembler_.lost({});
    restart_ = true;
    const std::uint64_t in_area = offset % event_->aux().size();
    const std::uint64_t skip =
        (perf::kBtsRecordBytes - in_area % perf::kBtsRecordBytes) % perf::kBtsRecordBytes;
    offset += std::min(skip, size);
    size -= std::min(skip, size);
  }
  assembler_.raw_records(perf::copy_piece(event_->aux(), offset, size));
  if (piece.truncated()) {
    assembler_.lost({});
    restart_ = true;  // the kernel has disabled it
  } else if (piece.has_holes()) {
    assembler_.lost({});
  }
}

void BtsRecorder::drain_aux() {
  // Read before the ring, so that the ring has the record of every byte below this head.
  const std::uint64_t head = event_->aux_head();
  const std::uint64_t unread = head - aux_->tail();
  drain_ring();
  for (const auto& piece : aux_->take(head)) take_piece(piece);
  // Without room for one more record the CPU has stopped storing, and no record says so.
  if (unread + perf::kBtsRecordBytes > event_->aux().size() && !restart_) {
    assembler_.lost({});
    restart_ = true;
  }
  event_->set_aux_tail(aux_->tail());
}

void BtsRecorder::drain_snapshot(bool stopped) {
  // Bytes that the hardware is still writing are torn; leave them for a later drain.
  if (!event_->disable() && !stopped) return;
  drain_ring();
  const auto news = snapshot_.look(event_->aux(), event_->aux_head());
  if (news.lost) assembler_.lost({});
  if (!news.bytes.empty()) news_ = true;
  assembler_.raw_records(news.bytes);
  restart_ = true;
}

void BtsRecorder::check_times(bool stopped) {
  const auto now = event_->times();
  // On failure it is unknown what the event missed.
  if (!now) return assembler_.lost({});
  if (now->in_error || now->unseen_since(times_)) assembler_.lost({});
  if (now->in_error) {
    restart_ = true;
    return;
  }
  // The thread ran but the event's time did not advance: the kernel silently disabled the event for
  // lack of room. A thread that was only resumed may still be waiting for a CPU.
  if (stopped && aux_ && ran_ && !news_ && !restart_ && !off_ && now->enabled == times_.enabled) {
    assembler_.lost({});
    restart_ = true;
  }
  if (now->enabled != times_.enabled) ran_ = false;
  times_ = *now;
}

Result<void> BtsRecorder::turn_on() {
  restart_ = false;
  auto on = event_->enable();
  if (on && paused_) on = event_->pause_output(false);
  if (on) paused_ = false;
  off_ = !on;
  return on;
}

void BtsRecorder::drain(std::optional<TraceeAddr> pc) {
  if (ended_) {
    // The thread runs on without its event.
    if (!pc || !std::exchange(going_, false)) return;
    assembler_.lost({0, LossBound::kExact, decoder::GapReason::kNotRecorded});
    return assembler_.flush(pc);
  }
  // This gap precedes everything that this drain reads.
  if (off_ && going_) assembler_.lost({0, LossBound::kExact, decoder::GapReason::kNotRecorded});
  news_ = false;
  // Asked before reading, so that records that arrive in between are still read.
  const bool dead = event_->dead();
  const bool stopped = pc.has_value() || dead;
  if (!aux_) {
    event_->mode() == BufferMode::kStream ? drain_ring() : drain_history(stopped);
  } else {
    event_->mode() == BufferMode::kStream ? drain_aux() : drain_snapshot(stopped);
  }
  check_times(stopped);
  if (stopped) tell_lost_at_the_end();
  if (dead) {
    ended_ = true;
  } else if (restart_ || off_) {
    (void)turn_on();
  }
  if (stopped) hand_out_departure();
  if (not_bts_) assembler_.lost({0, LossBound::kExact, decoder::GapReason::kNotRecorded});
  assembler_.flush(pc);
  judge();
  if (pc || news_) ran_ = false;
  if (pc) going_ = false;
}

/// Consecutive branches join, except at signals; sparse samples do not.
void BtsRecorder::judge() {
  constexpr std::uint64_t kEnough = 64;
  if (!aux_ && pairs_ >= kEnough && filter_.breaks() > pairs_ - pairs_ / 4) not_bts_ = true;
}

std::string BtsRecorder::statistics() const {
  return fmt::format("perf-bts by {}, {} KiB, {} records, {} gaps, {} unseen signals{}",
                     aux_ ? "intel_bts" : "the data ring",
                     !event_ ? 0 : (aux_ ? event_->aux().size() : event_->data().size()) / 1024,
                     assembler_.user().records(), assembler_.user().gaps(), filter_.breaks(),
                     not_bts_ ? "; the kernel treated the request as a plain sampler" : "");
}

}  // namespace backtrail::tracee
