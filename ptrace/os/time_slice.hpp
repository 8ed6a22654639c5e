// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lengthens the time slice of the calling thread for a while (sched_setattr(2)).

#include <cstdint>

namespace backtrail::tracee {

/// The time slice of the thread that calls it. How long a thread's turn is changes neither its
/// share of the CPU nor its priority. But of a thread that waits again after some microseconds, as
/// the tracing thread does after each stop, the scheduler remembers only as much unused share as
/// one slice: beside a thread that always runs it gets less than its half, with a longer slice all
/// of it. Linux before 6.12 ignores the slice.
class TimeSlice {
 public:
  TimeSlice() = default;
  ~TimeSlice() { restore(); }
  TimeSlice(const TimeSlice&) = delete;
  TimeSlice& operator=(const TimeSlice&) = delete;

  /// Does nothing if the thread has another scheduling policy than SCHED_OTHER, or if the kernel
  /// refuses.
  void lengthen();
  /// Threads and processes inherit the slice: call this before creating one.
  void restore();

 private:
  bool longer_ = false;
  std::uint64_t before_ns_ = 0;  ///< While `longer_`.
};

}  // namespace backtrail::tracee
