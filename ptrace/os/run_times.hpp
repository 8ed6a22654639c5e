// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How long a thread ran and had to wait for a CPU.

#include <chrono>
#include <optional>
#include <string_view>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Times since a thread began. Source: /proc/PID/schedstat,
/// Documentation/scheduler/sched-stats.rst.
struct RunTimes {
  std::chrono::nanoseconds ran;
  std::chrono::nanoseconds waited;  ///< Able to run while others had its CPU.
};

/// Reads the times of the thread that makes the object.
class OwnRunTimes {
 public:
  OwnRunTimes();
  /// Returns nullopt if this kernel does not count them.
  [[nodiscard]] std::optional<RunTimes> read() const;

 private:
  UniqueFd schedstat_;
};

/// Reads the text of a schedstat file. Returns nullopt if it is malformed, or of a kernel that
/// writes zeros because it does not count.
[[nodiscard]] std::optional<RunTimes> parse_run_times(std::string_view schedstat);

}  // namespace backtrail::tracee
