#pragma once
/// @file
/// Times off the CPU, put among the calls of a thread.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/corefile/thread_times.hpp"
#include "decoder/report/call_fold.hpp"

namespace backtrail::decoder {

/// Those of at least `shortest_ns` whose place is known, in order, the newest few thousand.
/// @param first    Number of the record that positions count from.
/// @param records  How many follow.
[[nodiscard]] std::vector<OffMark> off_marks(const TraceTimes& times, std::uint64_t first,
                                             std::uint64_t records, std::uint64_t shortest_ns);

/// What there is to say of a thread as a whole.
struct OffSums {
  std::uint64_t known_ns = 0;  ///< Times are known for so long, up to the thread's end.
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t preempted_ns = 0;
  std::uint64_t others = 0;  ///< Short ones of both kinds.
  std::uint64_t others_ns = 0;
  std::uint64_t lost = 0;  ///< Marks that the kernel had no room for.
};
[[nodiscard]] OffSums off_sums(const ThreadTimes& times);

/// "12 ms", "340 us", "2.5 s".
[[nodiscard]] std::string duration_text(std::uint64_t ns);

}  // namespace backtrail::decoder
