// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Options of a report.

#include <cstddef>
#include <cstdint>

namespace backtrail::decoder {

class ValueSource;

struct ReportOptions {
  std::size_t calls = 50;        ///< Calls shown of the first thread.
  std::size_t other_calls = 10;  ///< Calls shown of each other thread.
  /// Branches examined of each thread. 0: as many as the calls shown need, up to a bound.
  std::uint64_t branches = 0;
  bool only_dead = false;  ///< Reports only the thread that died or failed.
  /// Where the values of variables come from, borrowed; null for a report without values.
  ValueSource* values = nullptr;
};

/// First and largest number of branches examined if ReportOptions::branches is 0. A folded row can
/// stand for very many calls.
inline constexpr std::uint64_t kFirstLook = 1U << 16U;
inline constexpr std::uint64_t kLongestLook = 1U << 22U;
inline constexpr std::uint64_t kLookGrowth = 8;

}  // namespace backtrail::decoder
