// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Places off-CPU times among the calls of a thread.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/corefile/thread_times.hpp"
#include "decoder/report/call_fold.hpp"

namespace backtrail::decoder {

/// Returns the off-CPU times of at least `shortest_ns` with a known place, in order; at most the
/// newest few thousand.
/// @param first    Number of the record at position 0.
/// @param records  Number of records examined.
[[nodiscard]] std::vector<OffMark> off_marks(const TraceTimes& times, std::uint64_t first,
                                             std::uint64_t records, std::uint64_t shortest_ns);

/// Totals of a thread's off-CPU times.
struct OffSums {
  std::uint64_t known_ns = 0;  ///< Length of the time before the thread's end that is covered.
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t preempted_ns = 0;
  std::uint64_t others = 0;  ///< Short ones of both kinds, not listed one by one.
  std::uint64_t others_ns = 0;
  std::uint64_t lost = 0;  ///< Marks that the kernel had no room for.
};
[[nodiscard]] OffSums off_sums(const ThreadTimes& times);

/// Formats a duration: "12 ms", "340 us", "2.5 s".
[[nodiscard]] std::string duration_text(std::uint64_t ns);

}  // namespace backtrail::decoder
