// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Searches many threads for failures, within a total bound on records examined.

#include <cstdint>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/failure_calls.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

class FailureScan {
 public:
  /// Borrows both.
  FailureScan(const TraceArchive& archive, Symbols& symbols)
      : archive_{archive}, symbols_{symbols} {}

  /// records_since_failure() and failure_weight() of one thread; both return 0 once the bound is
  /// reached.
  std::uint64_t records_since(std::uint32_t tid, FailureSign least);
  unsigned weight(std::uint32_t tid);

 private:
  /// Most records examined in one thread, and in all threads together.
  static constexpr std::uint64_t kMostOfThread = 1U << 20U;
  static constexpr std::uint64_t kMost = 1U << 24U;
  /// Reserves records of the thread for examination. Returns how many may be examined.
  std::uint64_t take(std::uint32_t tid);

  const TraceArchive& archive_;
  Symbols& symbols_;
  std::uint64_t left_ = kMost;
};

}  // namespace backtrail::decoder
