#pragma once
/// @file
/// The neutral branch record: one form for every CPU, source and program width.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

enum class RecordKind : std::uint8_t {
  /// One taken control transfer: `from` is the address of the branching instruction, `to` where it
  /// went. Branches that fall through leave no record, nor do system calls that come back behind
  /// themselves.
  kBranch,
  /// Control moved between two instructions without a branch: a signal was delivered. `from` is the
  /// address of the instruction that would have been next, `to` the handler's first.
  kAsync,
  /// Recording did not see what ran between `from` (the instruction that would have been next when
  /// it stopped; 0 = unknown) and `to` (where it began again). `reason` says why.
  kGap,
};

enum class GapReason : std::uint8_t {
  kNone,
  kStart,        ///< Recording began here. Always the first record of a trace.
  kOverflow,     ///< Records were lost; `payload` is how many, 0 = unknown.
  kPcChanged,    ///< The debugger moved the pc.
  kExec,         ///< The program replaced itself; older addresses mean other code.
  kNotRecorded,  ///< The thread ran, or may have run, without being recorded.
  kUndecodable,  ///< Code was unreadable or no instruction.
  kUnseenAsync,  ///< Nothing was lost, but control moved (a signal) and the source has no record of
                 ///< how; `from` is where the block began that it left.
};

/// What `payload` says of the records that a gap stands for.
enum class LossBound : std::uint8_t {
  kExact,    ///< So many; with payload 0: not known at all.
  kAtLeast,  ///< So many or more.
  kBatches,  ///< So many batches, each of 1 to perf::kBtsBatchRecords records.
};

/// 24 bytes, like the hardware's 64-bit BTS record, so that buffer sizes mean the same.
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
