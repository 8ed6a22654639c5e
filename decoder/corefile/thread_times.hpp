#pragma once
/// @file
/// When a thread was on a CPU, and where in its trace, as far as that is known.
///
/// Branches carry no time. What there is: now and then somebody looked, and knows between which two
/// records the thread then was; and the kernel said when it left its CPU. Times are nanoseconds of
/// CLOCK_MONOTONIC, places are numbers of records in the thread's trace.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/result.hpp"

namespace backtrail::decoder {

/// From one time to the other the thread had executed at least so many records and at most so many.
struct TimePin {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t earliest = 0;
  std::uint64_t latest = 0;
  bool operator==(const TimePin&) const = default;
};

/// It was not on a CPU.
struct OffCpu {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  bool preempted = false;  ///< It could have run; else it waited for something.
  bool operator==(const OffCpu&) const = default;
  [[nodiscard]] std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

struct ThreadTimes {
  std::uint64_t since_ns = 0;  ///< Nothing is known of earlier times.
  std::uint64_t until_ns = 0;  ///< The thread's last stop, at the end of its trace.
  std::uint64_t lost = 0;      ///< Marks that the kernel had no room for.
  std::uint64_t others = 0;    ///< Times off the CPU that are not listed: short ones.
  std::uint64_t others_ns = 0;
  std::vector<TimePin> pins;  ///< By time.
  std::vector<OffCpu> off;    ///< By time.
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

/// Looks places and times up.
class TraceTimes {
 public:
  /// `records`: how many the thread's trace has, ever.
  TraceTimes(ThreadTimes times, std::uint64_t records);

  [[nodiscard]] const ThreadTimes& times() const { return times_; }
  /// Where the thread was while it was off its CPU.
  [[nodiscard]] PlaceRange place_of(const OffCpu& off) const;
  /// When it had executed so many records and no more.
  [[nodiscard]] TimeRange time_of(std::uint64_t records) const;

 private:
  ThreadTimes times_;
  std::uint64_t records_;
};

inline constexpr std::uint32_t kTimesVersion = 1;
/// What fits into a block; more is refused by readers.
inline constexpr std::size_t kMostTimePins = 16384;
inline constexpr std::size_t kMostOffCpu = 16384;

/// Appends a block to `out`, of the newest pins and times off the CPU if there are more than fit.
void append_times(std::uint32_t tid, const ThreadTimes& times, std::vector<std::uint8_t>& out);

struct TraceBlock;
/// Error kMalformed: damaged, or of a version that this does not know.
Result<ThreadTimes> decode_times(const TraceBlock& block);

}  // namespace backtrail::decoder
