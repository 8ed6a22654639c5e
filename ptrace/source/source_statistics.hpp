// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counters of recording, summed over threads and processes.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace backtrail::tracee {

/// Every source adds its numbers while it runs or when it ends; see TraceConfig.
struct SourceStatistics {
  using Time = std::chrono::nanoseconds;

  std::uint64_t branches = 0;
  std::uint64_t instructions = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t full_logs = 0;
  std::uint64_t values = 0;   ///< Values recorded (TraceConfig::values).
  std::uint64_t entries = 0;  ///< Entries into translated code from native code.
  std::uint64_t misses = 0;   ///< Misses: no translation was linked.
  std::uint64_t stepped = 0;  ///< Instructions executed by single steps.
  std::uint64_t superblocks = 0;
  std::uint64_t translated_instructions = 0;
  std::uint64_t code_bytes = 0;
  std::map<std::string, std::uint64_t> fallbacks;  ///< Instructions stepped, by reason.
  Time setting_up{};                               ///< Making the memory for translated code.
  Time serving{};                                  ///< Serving misses, including translation.
  Time translating{};                              ///< Included in the other two.
  Time reading_logs{};
};

/// Adds the time of its life to a counter; does nothing if it is null.
class StatisticsTimer {
 public:
  explicit StatisticsTimer(SourceStatistics::Time* counter) : counter_{counter} {
    if (counter_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~StatisticsTimer() {
    if (counter_ != nullptr) *counter_ += std::chrono::steady_clock::now() - begin_;
  }
  StatisticsTimer(const StatisticsTimer&) = delete;
  StatisticsTimer& operator=(const StatisticsTimer&) = delete;

 private:
  SourceStatistics::Time* counter_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace backtrail::tracee
