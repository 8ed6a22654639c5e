#pragma once
/// @file
/// What of a core file's traces is there, counted to the last branch.

#include <cstdint>
#include <map>

#include "decoder/corefile/trace_archive.hpp"

namespace backtrail::decoder {

/// Of one thread. `TraceArchive::Thread::lost` is not in these.
struct ThreadCheck {
  std::uint64_t branches = 0;  ///< In blocks that can be read.
  /// Branches that gaps stand for which came while it was recorded, as far as that is known.
  std::uint64_t lost_between = 0;
  bool lost_is_exact = true;  ///< No gap of an unknown number of branches.
  /// Records that the file should have, in blocks that are damaged or not there.
  std::uint64_t missing = 0;

  bool operator==(const ThreadCheck&) const = default;
};

/// Unpacks every block of the file, on all CPUs. By thread id, as TraceArchive::threads().
[[nodiscard]] std::map<std::uint32_t, ThreadCheck> check_traces(const TraceArchive& archive);

}  // namespace backtrail::decoder
