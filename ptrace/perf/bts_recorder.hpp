#pragma once
/// @file
/// BTS of one thread by perf: by the data ring (every plain user may) or by the intel_bts unit's
/// AUX area (root, or CAP_PERFMON).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decoder/perf/aux_area.hpp"
#include "decoder/perf/continuity_filter.hpp"
#include "decoder/perf/data_ring.hpp"
#include "decoder/perf/snapshot_reader.hpp"
#include "decoder/perf/split_assembler.hpp"
#include "ptrace/perf/perf_event.hpp"

namespace backtrail::tracee {

struct RecorderOptions {
  BufferMode mode = BufferMode::kHistory;
  std::uint64_t size_bytes = 0;  ///< Of raw records; what is granted may be less.
  /// Also tell when the thread gets and leaves a CPU (costs 8 bytes a record in the ring). Not of a
  /// history: whose records differ in size has no known begin when it was overwritten.
  bool marks = false;
  /// The kernel's branches too. Only the intel_bts unit records those.
  bool kernel = false;
};

/// What asks the kernel for BTS by the data ring.
[[nodiscard]] perf_event_attr bts_ring_attributes(const RecorderOptions& options);

class BtsRecorder {
 public:
  /// Opens on a thread, disabled. `cpu_has_bts`: an Intel CPU whose flags say bts and dtes64; other
  /// drivers take the same request for a plain counter, so the kernel's yes alone proves nothing.
  /// `insns` and `sink` are borrowed. Errors: kTraceeGone, kUnsupported, or the more telling errno
  /// of the two ways.
  static Result<std::unique_ptr<BtsRecorder>> open(PerfKernel& kernel, pid_t tid, bool cpu_has_bts,
                                                   const RecorderOptions& options,
                                                   decoder::InsnCache& insns,
                                                   decoder::TraceConsumer& sink);
  BtsRecorder(const BtsRecorder&) = delete;
  BtsRecorder& operator=(const BtsRecorder&) = delete;
  ~BtsRecorder() = default;

  /// Recording begins at `pc`.
  Result<void> start(TraceeAddr pc);
  /// Hands on what there is. `pc` when the thread is stopped *and* a ptrace request on it has
  /// succeeded since: only then it is off its CPU and the kernel has emptied the CPU's buffer.
  void drain(std::optional<TraceeAddr> pc = std::nullopt);
  /// From now on nothing is overwritten (BufferMode::kStream), and the buffer has that size at
  /// least, if it can be had. The thread is stopped and was drained. Where that cannot be had it
  /// goes on as it was; the error says why.
  Result<void> stream(std::uint64_t size_bytes = 0);
  /// From now on `whole` (borrowed) gets the kernel's branches, too, and all in their order. The
  /// thread is stopped and was drained. Errors: EOPNOTSUPP where the kernel cannot, EACCES where we
  /// may not; it goes on as it was then.
  Result<void> see_kernel(decoder::TraceConsumer& whole);
  /// How much of the buffers waits to be read, if nothing may be overwritten.
  [[nodiscard]] unsigned percent_full() const { return ended_ ? 0 : event_->percent_full(); }
  /// The thread is about to run: from now on the event must get on too.
  void resumed() { ran_ = going_ = true; }
  /// A gap of the debugger's making, between two drains.
  void insert(const decoder::Record& record) { assembler_.insert(record); }
  /// The kernel gave the event up: the thread ended, or a set-id exec took its events away.
  [[nodiscard]] bool ended() const { return ended_; }
  /// What was opened turned out to be no BTS.
  [[nodiscard]] bool not_bts() const { return not_bts_; }
  [[nodiscard]] bool uses_aux() const { return aux_.has_value(); }
  /// While it has not ended.
  [[nodiscard]] const PerfEvent& event() const { return *event_; }
  [[nodiscard]] std::string statistics() const;

 private:
  BtsRecorder(PerfEvent event, pid_t tid, const RecorderOptions& options, bool by_aux,
              decoder::InsnCache& insns, decoder::TraceConsumer& sink);

  void use(PerfEvent event, const RecorderOptions& options);
  Result<void> change(const RecorderOptions& wanted);
  void judge();
  void drain_ring();
  void drain_history(bool stopped);
  void drain_aux();
  void drain_snapshot(bool stopped);
  void take_record(const decoder::perf::RecordView& record);
  void take_pair(std::uint64_t from, std::uint64_t to);
  void take_piece(const decoder::perf::AuxPiece& piece);
  void take_switch(const decoder::perf::ParsedRecord& record, bool departs, bool preempted);
  void hand_out_departure();
  void check_times(bool stopped);
  void note_lost(std::uint64_t batches);
  void tell_lost_at_the_end();
  Result<void> turn_on();

  std::optional<PerfEvent> event_;
  pid_t tid_;
  RecorderOptions options_;
  decoder::perf::SampleLayout layout_;
  decoder::perf::ContinuityFilter filter_;
  decoder::perf::SplitAssembler assembler_;
  std::optional<decoder::perf::DataRing> ring_;
  std::uint64_t tail_ = 0;
  std::uint64_t history_head_ = 0;
  std::optional<decoder::perf::AuxCursor> aux_;
  decoder::perf::SnapshotReader snapshot_{24};
  std::optional<decoder::TraceMark> departure_;
  EventTimes times_;
  std::uint64_t lost_seen_ = 0;  ///< What LOST records said.
  std::uint64_t lost_told_ = 0;  ///< Has become gaps: by LOST records, or by the event's count.
  bool crowded_ = false;         ///< A batch may have been lost, and no record has come since.
  bool supposed_ = false;        ///< That was told, and no record has come since.
  bool going_ = false;           ///< The thread was set going since its last stop.
  bool ran_ = false;             ///< And the event has not got on since.
  bool news_ = false;            ///< This drain brought bytes.
  bool restart_ = false;         ///< The kernel disabled the event.
  bool paused_ = false;          ///< It could not be told to write on.
  bool off_ = false;             ///< It could not be enabled: nothing is recorded.
  bool ended_ = false;
  bool not_bts_ = false;
  std::uint64_t pairs_ = 0;  ///< Of the data ring.
};

}  // namespace backtrail::tracee
