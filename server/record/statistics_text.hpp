// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Formats the statistics that `record --stats` prints.

#include <chrono>
#include <string>

#include "ptrace/source/source_statistics.hpp"

namespace backtrail::server {

struct RunFacts {
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;
  std::uint64_t left = 0;  ///< Processes that continued unrecorded.
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds recorder_cpu{};  ///< CPU time of the recorder itself.
  std::chrono::nanoseconds program_cpu{};   ///< CPU time of the program and its children.
};

/// Returns lines of the form "backtrail: NAME  VALUE".
[[nodiscard]] std::string statistics_text(const tracee::SourceStatistics& sums,
                                          const RunFacts& run);

}  // namespace backtrail::server
