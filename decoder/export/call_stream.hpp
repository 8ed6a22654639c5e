#pragma once
/// @file
/// The calls of one thread of a crash file, told one after the other: memory for what is open only.

#include <cstdint>

#include "decoder/calls/call_outline.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/gap_count.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

class CallStream {
 public:
  /// Reads the trace once. All are borrowed.
  CallStream(const ExportSource& source, std::uint32_t tid, InsnCache& insns);

  /// Reads it again. As OrderedCalls.
  void tell(const OrderedCalls::Tell& begins, const OrderedCalls::Tell& ends) const;
  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] const GapCount& gaps() const { return gaps_; }
  /// Number of the oldest one in the thread's whole trace.
  [[nodiscard]] std::uint64_t first() const;

 private:
  const ExportSource& source_;
  std::uint32_t tid_;
  InsnCache& insns_;
  CallOutline outline_;
  std::uint64_t records_ = 0;
  GapCount gaps_;
};

}  // namespace backtrail::decoder
