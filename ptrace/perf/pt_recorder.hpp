// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records Intel PT of one thread through perf, as raw packets.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decoder/perf/aux_area.hpp"
#include "decoder/perf/data_ring.hpp"
#include "decoder/perf/snapshot_reader.hpp"
#include "decoder/pt/pt_packet_consumer.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/perf/perf_event.hpp"

namespace backtrail::tracee {

class PtRecorder {
 public:
  /// Opens a disabled event on a thread, with the fewest packets that control flow needs. Errors:
  /// kTraceeGone, kUnsupported if the kernel has no intel_pt, or the errno.
  static Result<std::unique_ptr<PtRecorder>> open(PerfKernel& kernel, pid_t tid,
                                                  const RecorderOptions& options,
                                                  decoder::PtPacketConsumer& packets);
  PtRecorder(const PtRecorder&) = delete;
  PtRecorder& operator=(const PtRecorder&) = delete;
  ~PtRecorder() = default;

  Result<void> start() { return turn_on(); }
  /// Same contract as BtsRecorder::stream().
  Result<void> stream(std::uint64_t size_bytes = 0);
  [[nodiscard]] unsigned percent_full() const { return ended_ ? 0 : event_->percent_full(); }
  void resumed() { ran_ = going_ = true; }
  /// Hands on the packets that have arrived. Pass `stopped` under the conditions under which
  /// BtsRecorder::drain() takes a pc.
  void drain(bool stopped = true);
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns the event. Must not be called after it has ended.
  [[nodiscard]] const PerfEvent& event() const { return *event_; }
  [[nodiscard]] std::string statistics() const;

 private:
  PtRecorder(PerfEvent event, pid_t tid, const RecorderOptions& options,
             decoder::PtPacketConsumer& packets);
  void use(PerfEvent event, const RecorderOptions& options);
  void lose();
  void drain_ring();
  bool drain_stream();
  bool drain_snapshot(bool stopped);
  Result<void> turn_on();

  std::optional<PerfEvent> event_;
  pid_t tid_;
  RecorderOptions options_;
  decoder::PtPacketConsumer& packets_;
  std::optional<decoder::perf::DataRing> ring_;
  decoder::perf::AuxCursor aux_{0};
  decoder::perf::SnapshotReader snapshot_{1};
  std::uint64_t tail_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t holes_ = 0;
  EventTimes times_;
  bool going_ = false;  ///< The thread was resumed since its last stop.
  bool ran_ = false;    ///< The thread ran; the event's time has not advanced since.
  bool hole_ = false;
  bool off_ = false;  ///< Enabling the event failed.
  bool ended_ = false;
};

}  // namespace backtrail::tracee
