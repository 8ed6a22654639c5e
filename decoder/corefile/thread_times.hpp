// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// When a thread was on a CPU and where in its trace, as far as known.
///
/// Branches carry no time. There are two sources: samples, which show between which two records the
/// thread was at that time, and the kernel's marks for when the thread left its CPU. Times are
/// nanoseconds of CLOCK_MONOTONIC; places are record numbers in the thread's trace.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/result.hpp"

namespace backtrail::decoder {

/// From `begin_ns` to `end_ns` the thread had executed between `earliest` and `latest` records.
struct TimePin {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t earliest = 0;
  std::uint64_t latest = 0;
  bool operator==(const TimePin&) const = default;
};

/// A time that the thread was not on a CPU.
struct OffCpu {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  bool preempted = false;  ///< True if it was runnable; false if it waited for something.
  bool operator==(const OffCpu&) const = default;
  [[nodiscard]] std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

struct ThreadTimes {
  std::uint64_t since_ns = 0;  ///< Start of the time that is covered.
  std::uint64_t until_ns = 0;  ///< The thread's last stop, at the end of its trace.
  std::uint64_t lost = 0;      ///< Marks that the kernel had no room for.
  std::uint64_t others = 0;    ///< Short off-CPU times that are not in `off`.
  std::uint64_t others_ns = 0;
  std::vector<TimePin> pins;  ///< Sorted by time.
  std::vector<OffCpu> off;    ///< Sorted by time.
  bool operator==(const ThreadTimes&) const = default;
};

struct PlaceRange {
  std::uint64_t earliest = 0;
  std::uint64_t latest = 0;
  [[nodiscard]] std::uint64_t width() const { return latest - earliest; }
};
struct TimeRange {
  std::uint64_t earliest_ns = 0;
  std::uint64_t latest_ns = 0;
};

/// Finds places by time and times by place.
class TraceTimes {
 public:
  /// `records` is the number of records that the thread ever had.
  TraceTimes(ThreadTimes times, std::uint64_t records);

  [[nodiscard]] const ThreadTimes& times() const { return times_; }
  /// Returns where the thread was during an off-CPU time.
  [[nodiscard]] PlaceRange place_of(const OffCpu& off) const;
  /// Returns when the thread had executed exactly that many records.
  [[nodiscard]] TimeRange time_of(std::uint64_t records) const;

 private:
  ThreadTimes times_;
  std::uint64_t records_;
};

inline constexpr std::uint32_t kTimesVersion = 1;
/// Most entries that a writer puts into a block; readers refuse more.
inline constexpr std::size_t kMostTimePins = 16384;
inline constexpr std::size_t kMostOffCpu = 16384;

/// Appends a block to `out`, with the newest entries if there are more than fit.
void append_times(std::uint32_t tid, const ThreadTimes& times, std::vector<std::uint8_t>& out);

struct TraceBlock;
/// Error kMalformed: damaged, or of an unknown version.
Result<ThreadTimes> decode_times(const TraceBlock& block);

}  // namespace backtrail::decoder
