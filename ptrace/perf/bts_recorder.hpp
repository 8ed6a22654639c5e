// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records BTS of one thread through perf: by the data ring (open to every user) or by the AUX area
/// of the intel_bts unit (root or CAP_PERFMON).

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
  std::uint64_t size_bytes = 0;  ///< Size of the buffer for raw records; the kernel may grant less.
  /// Records, too, when the thread gets and leaves a CPU (costs 8 bytes per record in the ring).
  /// Ignored in kHistory mode: once a ring with records of different sizes has been overwritten,
  /// the start of its oldest record is unknown.
  bool marks = false;
  /// Records the kernel's branches, too. Only the intel_bts unit can.
  bool kernel = false;
};

/// Returns the attributes of an event that records BTS in the data ring.
[[nodiscard]] perf_event_attr bts_ring_attributes(const RecorderOptions& options);

class BtsRecorder {
 public:
  /// Opens a disabled event on a thread. `cpu_has_bts`: an Intel CPU whose flags include bts and
  /// dtes64. On other CPUs the kernel may open the same event as a plain counter, so a successful
  /// open proves nothing. `insns` and `sink` are borrowed. Errors: kTraceeGone, kUnsupported, or
  /// the errno of whichever of the two ways tells the user more.
  static Result<std::unique_ptr<BtsRecorder>> open(PerfKernel& kernel, pid_t tid, bool cpu_has_bts,
                                                   const RecorderOptions& options,
                                                   decoder::InsnCache& insns,
                                                   decoder::TraceConsumer& sink);
  BtsRecorder(const BtsRecorder&) = delete;
  BtsRecorder& operator=(const BtsRecorder&) = delete;
  ~BtsRecorder() = default;

  /// Begins recording; the thread is stopped at `pc`.
  Result<void> start(TraceeAddr pc);
  /// Hands on all records that have arrived. Pass `pc` only if the thread is stopped and a ptrace
  /// request on it has succeeded since: only then is it off its CPU, and the kernel has emptied the
  /// CPU's buffer.
  void drain(std::optional<TraceeAddr> pc = std::nullopt);
  /// Switches to BufferMode::kStream, in which nothing is overwritten, with a buffer of at least
  /// `size_bytes` if the kernel grants it. Requires a stopped and drained thread. On error,
  /// recording continues as before.
  Result<void> stream(std::uint64_t size_bytes = 0);
  /// Records the kernel's branches, too, from now on; `whole` (borrowed) gets user and kernel
  /// branches in order. Requires a stopped and drained thread. Errors: EOPNOTSUPP if the kernel
  /// cannot, EACCES if the server lacks permission; recording then continues as before.
  Result<void> see_kernel(decoder::TraceConsumer& whole);
  /// Returns how much of the buffers waits to be read, in percent; 0 if the oldest records are
  /// overwritten.
  [[nodiscard]] unsigned percent_full() const { return ended_ ? 0 : event_->percent_full(); }
  /// Call when the thread is about to run: the event's time must then advance too.
  void resumed() { ran_ = going_ = true; }
  /// Inserts a gap that the debugger caused, between two drains.
  void insert(const decoder::Record& record) { assembler_.insert(record); }
  /// Returns true if the kernel has ended the event: the thread ended, or a set-id exec removed it.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns true if the event turned out not to be BTS.
  [[nodiscard]] bool not_bts() const { return not_bts_; }
  [[nodiscard]] bool uses_aux() const { return aux_.has_value(); }
  /// Returns the event. Must not be called after it has ended.
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
  struct Losses {
    std::uint64_t seen = 0;  ///< Lost batches that LOST records reported.
    std::uint64_t told = 0;  ///< Lost batches already reported as gaps.
    bool crowded = false;    ///< A batch may have been lost; no record has come since.
    bool supposed = false;   ///< A gap was added for that; no record has come since.
  };
  Losses losses_;
  bool going_ = false;    ///< The thread was resumed since its last stop.
  bool ran_ = false;      ///< The thread ran; the event's time has not advanced since.
  bool news_ = false;     ///< The current drain has found bytes.
  bool restart_ = false;  ///< The kernel disabled the event.
  bool paused_ = false;   ///< Output is paused; resuming it failed.
  bool off_ = false;      ///< Enabling the event failed; nothing is recorded.
  bool ended_ = false;
  bool not_bts_ = false;
  std::uint64_t pairs_ = 0;  ///< Pairs taken from the data ring.
};

}  // namespace backtrail::tracee
