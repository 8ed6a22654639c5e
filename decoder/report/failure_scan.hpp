#pragma once
/// @file
/// Looking for failures in many threads, with a bound on what is looked at in all.

#include <cstdint>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

class FailureScan {
 public:
  /// Both are borrowed.
  FailureScan(const TraceArchive& archive, Symbols& symbols)
      : archive_{archive}, symbols_{symbols} {}

  /// As records_since_failure() and failure_weight(), which see; 0 once the bound is reached.
  std::uint64_t records_since(std::uint32_t tid);
  unsigned weight(std::uint32_t tid);

 private:
  /// In a thread, and in all together, in records.
  static constexpr std::uint64_t kMostOfThread = 1U << 20U;
  static constexpr std::uint64_t kMost = 1U << 24U;
  /// How many records of the thread may be looked at; they are then accounted for.
  std::uint64_t take(std::uint32_t tid);

  const TraceArchive& archive_;
  Symbols& symbols_;
  std::uint64_t left_ = kMost;
};

}  // namespace backtrail::decoder
