#pragma once
/// @file
/// When a thread was on a CPU, from the kernel's context-switch records. Needs no hardware.

#include <memory>
#include <vector>

#include "decoder/perf/data_ring.hpp"
#include "decoder/trace/trace_mark.hpp"
#include "ptrace/perf/perf_event.hpp"

namespace backtrail::tracee {

class SchedMarks {
 public:
  /// Opens on a thread and begins. Errors: EACCES where kernel.perf_event_paranoid is 3 (Debian) or
  /// 4 (Ubuntu) and we are not root; others of PerfEvent.
  static Result<std::unique_ptr<SchedMarks>> open(PerfKernel& kernel, pid_t tid,
                                                  std::uint64_t ring_bytes = 16UL * 4096);
  SchedMarks(const SchedMarks&) = delete;
  SchedMarks& operator=(const SchedMarks&) = delete;
  ~SchedMarks() = default;

  /// What came since the last call, oldest first. Two marks of one way in a row say that some are
  /// missing; lost() counts them. A stop by the debugger is a departure like any other.
  [[nodiscard]] std::vector<decoder::TraceMark> take();
  [[nodiscard]] std::uint64_t lost() const;
  /// Readable when many wait.
  [[nodiscard]] int fd() const { return event_.fd(); }

 private:
  explicit SchedMarks(PerfEvent event);

  PerfEvent event_;
  decoder::perf::DataRing ring_;
  std::uint64_t tail_ = 0;
  std::uint64_t lost_ = 0;  ///< What records said.
};

}  // namespace backtrail::tracee
