// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counts what a core file's traces contain, to the last branch.

#include <cstdint>
#include <map>

#include "decoder/corefile/trace_archive.hpp"

namespace backtrail::decoder {

/// Counts of one thread, without `TraceArchive::Thread::lost`.
struct ThreadCheck {
  std::uint64_t branches = 0;  ///< Branches in readable blocks.
  /// Branches lost during recording, as far as known.
  std::uint64_t lost_between = 0;
  bool lost_is_exact = true;  ///< No gap has an unknown number of branches.
  /// Records that the file should have, in damaged or missing blocks.
  std::uint64_t missing = 0;

  bool operator==(const ThreadCheck&) const = default;
};

/// Unpacks every block of the file, on all CPUs. Returns the counts by thread id, as in
/// TraceArchive::threads().
[[nodiscard]] std::map<std::uint32_t, ThreadCheck> check_traces(const TraceArchive& archive);

}  // namespace backtrail::decoder
