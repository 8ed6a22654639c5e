// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records when a thread was on a CPU, from the kernel's context-switch records. Needs no hardware.

#include <memory>
#include <vector>

#include "decoder/perf/data_ring.hpp"
#include "decoder/trace/trace_mark.hpp"
#include "ptrace/perf/perf_event.hpp"

namespace backtrail::tracee {

class SchedMarks {
 public:
  /// Opens and enables an event on a thread. Errors: EACCES if kernel.perf_event_paranoid is 3
  /// (Debian) or 4 (Ubuntu) and the server is not root; others as PerfEvent::open().
  static Result<std::unique_ptr<SchedMarks>> open(PerfKernel& kernel, pid_t tid,
                                                  std::uint64_t ring_bytes = 16UL * 4096);
  SchedMarks(const SchedMarks&) = delete;
  SchedMarks& operator=(const SchedMarks&) = delete;
  ~SchedMarks() = default;

  /// Returns the marks since the last call, oldest first. Two marks in a row in one direction mean
  /// that marks are missing; lost() counts them. A stop by the debugger is a departure like any
  /// other.
  [[nodiscard]] std::vector<decoder::TraceMark> take();
  [[nodiscard]] std::uint64_t lost() const;
  /// Descriptor that becomes readable when many marks wait.
  [[nodiscard]] int fd() const { return event_.fd(); }

 private:
  explicit SchedMarks(PerfEvent event);

  PerfEvent event_;
  decoder::perf::DataRing ring_;
  std::uint64_t tail_ = 0;
  std::uint64_t lost_ = 0;  ///< Losses that records reported.
};

}  // namespace backtrail::tracee
