// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The code that the threads of a crash file executed.

#include <cstdint>
#include <map>
#include <memory>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/trace/code_history.hpp"
#include "decoder/trace/code_reader.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

class PastCode {
 public:
  /// Borrows both.
  PastCode(const TraceArchive& archive, CodeReader& code) : archive_{archive}, at_end_{code} {}

  /// The instructions that are in memory at the end.
  [[nodiscard]] InsnCache& at_end() { return at_end_; }
  /// Returns what a thread's trace tells, by the numbers of records in the whole trace; null if
  /// that is nothing. Valid as long as this object.
  CodeHistory* of(std::uint32_t tid);

 private:
  const TraceArchive& archive_;
  InsnCache at_end_;
  std::map<std::uint32_t, std::unique_ptr<CodeHistory>> threads_;  ///< Null: nothing is told.
};

}  // namespace backtrail::decoder
