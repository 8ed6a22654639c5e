// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records branch stacks of one thread through perf: Intel's LBR, AMD's BRS and LbrExtV2, Arm's
/// BRBE. Each sample holds the last branches before it; branches between samples that do not
/// overlap become a gap.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decoder/perf/branch_assembler.hpp"
#include "decoder/perf/data_ring.hpp"
#include "decoder/perf/stack_joiner.hpp"
#include "ptrace/perf/perf_event.hpp"

namespace backtrail::tracee {

class LbrRecorder {
 public:
  /// Opens a disabled event on a thread. It takes one sample every 15 to 1000 branches, whichever
  /// period the kernel accepts first.
  static Result<std::unique_ptr<LbrRecorder>> open(PerfKernel& kernel, pid_t tid,
                                                   std::uint64_t ring_bytes,
                                                   decoder::InsnCache& insns,
                                                   decoder::TraceConsumer& sink);
  LbrRecorder(const LbrRecorder&) = delete;
  LbrRecorder& operator=(const LbrRecorder&) = delete;
  ~LbrRecorder() = default;

  Result<void> start(TraceeAddr pc);
  /// Hands on what has arrived; `pc` as in BtsRecorder::drain(). The CPU's stack is lost at a stop
  /// and the newest sample is up to one period old, so the trace ends in a gap.
  void drain(std::optional<TraceeAddr> pc = std::nullopt);
  void resumed() { ran_ = true; }
  /// Inserts a gap that the debugger caused, between two drains.
  void insert(const decoder::Record& record) { assembler_.insert(record); }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] unsigned percent_full() const { return ended_ ? 0 : event_.percent_full(); }
  [[nodiscard]] const PerfEvent& event() const { return event_; }
  [[nodiscard]] std::string statistics() const;

 private:
  LbrRecorder(PerfEvent event, std::uint64_t period, decoder::InsnCache& insns,
              decoder::TraceConsumer& sink);
  void take_record(const decoder::perf::RecordView& view);
  [[nodiscard]] bool saw_all();

  PerfEvent event_;
  std::uint64_t period_;
  decoder::perf::BranchAssembler assembler_;
  decoder::perf::StackJoiner joiner_{assembler_};
  decoder::perf::DataRing ring_;
  std::uint64_t tail_ = 0;
  std::uint64_t samples_ = 0;
  EventTimes times_;
  bool apart_ = false;  ///< Within the current drain, no two stacks may be joined.
  bool ran_ = false;    ///< The thread was resumed since the last drain.
  bool ended_ = false;
};

}  // namespace backtrail::tracee
