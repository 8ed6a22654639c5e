// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The branch record: one form for every CPU, source and program width.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

enum class RecordKind : std::uint8_t {
  /// A taken control transfer. `from` is the branch instruction, `to` its target. Branches that
  /// fall through leave no record, nor do system calls that return to the next instruction.
  kBranch,
  /// Control moved without a branch: a signal was delivered. `from` is the interrupted instruction,
  /// which would have run next; `to` is the handler's first instruction.
  kAsync,
  /// Recording missed what ran between `from` (the instruction that would have run next when
  /// recording stopped; 0 if unknown) and `to` (where recording continued). `reason` states why.
  kGap,
};

enum class GapReason : std::uint8_t {
  kNone,
  kStart,        ///< Recording began here; always the first record of a trace.
  kOverflow,     ///< Records were lost: `payload` of them (see LossBound), 0 if unknown.
  kPcChanged,    ///< The debugger moved the pc.
  kExec,         ///< The program was replaced by exec; older addresses refer to other code.
  kNotRecorded,  ///< The thread ran, or may have run, unrecorded.
  kUndecodable,  ///< The code was unreadable or invalid.
  kUnseenAsync,  ///< No record was lost, but control moved (a signal) without a record from the
                 ///< source; `from` is the start of the block that was left.
};

/// How `payload` counts the records that a gap stands for.
enum class LossBound : std::uint8_t {
  kExact,    ///< The exact number; 0 if unknown.
  kAtLeast,  ///< A lower bound.
  kBatches,  ///< A number of batches, each of 1 to perf::kBtsBatchRecords records.
};

/// Takes 24 bytes, like the hardware's 64-bit BTS record, so that buffer sizes are comparable.
struct Record {
  TraceeAddr from;
  TraceeAddr to;
  RecordKind kind = RecordKind::kBranch;
  GapReason reason = GapReason::kNone;
  LossBound bound = LossBound::kExact;
  std::uint32_t payload = 0;

  bool operator==(const Record&) const = default;
};
static_assert(sizeof(Record) == 24);

[[nodiscard]] constexpr Record branch(TraceeAddr from, TraceeAddr to) {
  return {from, to};
}
[[nodiscard]] constexpr Record async_transfer(TraceeAddr from, TraceeAddr to) {
  return {from, to, RecordKind::kAsync};
}
[[nodiscard]] constexpr Record gap(GapReason reason, TraceeAddr from, TraceeAddr to,
                                   std::uint32_t lost = 0, LossBound bound = LossBound::kExact) {
  return {from, to, RecordKind::kGap, reason, bound, lost};
}

}  // namespace backtrail::decoder
