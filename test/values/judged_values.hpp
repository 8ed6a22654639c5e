// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Compares every value that is claimed to be known with the truth, and counts the known ones.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "decoder/values/value_history.hpp"
#include "step_truth.hpp"

namespace backtrail::decoder::values {

struct Yield {
  std::uint64_t known = 0;
  std::uint64_t all = 0;
  [[nodiscard]] double percent() const {
    return all == 0 ? 100.0 : 100.0 * static_cast<double>(known) / static_cast<double>(all);
  }
};

struct Judgement {
  std::vector<std::string> wrong;  ///< A line for each wrong value, at most 20.
  std::uint64_t wrong_count = 0;
  std::uint64_t compared_bits = 0;
  /// Distances from the end, in steps, for which yields are counted.
  static constexpr std::array<std::size_t, 4> kDistances{100, 1'000, 10'000, 100'000};
  std::array<Yield, 4> registers;
  std::array<Yield, 4> operands;
  bool consistent = true;
  std::size_t horizon = 0;
  double seconds = 0;

  [[nodiscard]] std::string text() const;
};

/// Prints the last steps of the run with the unknown registers that they read.
void show_unknown(TruthRun& run, HistoryLimits limits, std::size_t steps);

/// Checks all positions of the run.
Judgement judge(TruthRun& run, HistoryLimits limits);

}  // namespace backtrail::decoder::values
