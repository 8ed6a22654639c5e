#pragma once
/// @file
/// A thread's trace in a crash file, from its history in memory.

#include <cstdint>
#include <string>

#include "decoder/bts/record_ring.hpp"
#include "ptrace/core/core_writer.hpp"
#include "server/record/report_keeper.hpp"

namespace backtrail::server {

struct RingTrace {
  pid_t tid = 0;
  std::string name = {};
  const decoder::RecordRing* ring = nullptr;       ///< Borrowed.
  std::uint64_t lost = 0;                          ///< Older branches that it lacks.
  const ReportKeeper::Reports* reports = nullptr;  ///< Of its process. Borrowed, may be null.
  /// Branches left out of the newest report, in which the process ends; 0: it does not.
  std::uint64_t left_out_of_report = 0;
};

/// What was kept before reports, as far as it is older than the ring, then the ring.
[[nodiscard]] tracee::CoreTrace core_trace(const RingTrace& trace);

}  // namespace backtrail::server
