// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reports the calls of one thread of a crash file one by one. Memory use depends on the open calls
/// only.

#include <cstdint>

#include "decoder/calls/call_outline.hpp"
#include "decoder/corefile/past_code.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/gap_count.hpp"

namespace backtrail::decoder {

class CallStream {
 public:
  /// Reads the trace once. Borrows all arguments.
  CallStream(const ExportSource& source, std::uint32_t tid, PastCode& insns);

  /// Reads the trace again and reports its calls, see OrderedCalls.
  void tell(const OrderedCalls::Tell& begins, const OrderedCalls::Tell& ends) const;
  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] const GapCount& gaps() const { return gaps_; }
  /// Returns the number of the oldest record in the thread's whole trace.
  [[nodiscard]] std::uint64_t first() const;

 private:
  const ExportSource& source_;
  std::uint32_t tid_;
  PastCode& insns_;
  CallOutline outline_;
  std::uint64_t records_ = 0;
  GapCount gaps_;
};

}  // namespace backtrail::decoder
