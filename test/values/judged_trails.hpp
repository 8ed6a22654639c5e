// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Compares what trails of values say with the truth.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/values/value_trail.hpp"
#include "step_truth.hpp"

namespace backtrail::decoder::values {

struct TrailJudgement {
  std::vector<std::string> wrong;  ///< A line for each wrong statement, at most 20.
  std::uint64_t wrong_count = 0;
  std::uint64_t compared = 0;  ///< Bytes and registers that were compared.
};

/// Follows registers and memory from random places of the run.
TrailJudgement judge_trails(TruthRun& run, HistoryLimits limits, std::size_t trails);

}  // namespace backtrail::decoder::values
