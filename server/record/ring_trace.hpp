// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes a thread's trace for a crash file from its history in memory.

#include <cstdint>
#include <string>

#include "decoder/bts/record_ring.hpp"
#include "decoder/trace/fact_ring.hpp"
#include "ptrace/core/core_writer.hpp"
#include "server/record/report_keeper.hpp"

namespace backtrail::server {

struct RingTrace {
  pid_t tid = 0;
  std::string name = {};
  const decoder::RecordRing* ring = nullptr;       ///< Borrowed.
  const decoder::FactRing* facts = nullptr;        ///< Recorded values. Borrowed, may be null.
  std::uint64_t lost = 0;                          ///< Older branches that the ring lacks.
  const ReportKeeper::Reports* reports = nullptr;  ///< Reports of its process. Borrowed, may be
                                                   ///< null.
  /// Branches omitted from the newest report, in which the process ends; 0: it does not.
  std::uint64_t left_out_of_report = 0;
};

/// Returns the records saved before reports, as far as they are older than the ring, followed by
/// the ring.
[[nodiscard]] tracee::CoreTrace core_trace(const RingTrace& trace);

}  // namespace backtrail::server
