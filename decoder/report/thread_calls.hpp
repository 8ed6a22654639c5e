// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The calls of one thread of a crash file, rebuilt from its newest records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/calls/call_follower.hpp"
#include "decoder/corefile/past_code.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/call_fold.hpp"

namespace backtrail::decoder {

struct ThreadCalls {
  std::vector<Call> calls;
  std::vector<GapMark> gaps;  ///< Without the gap that begins every trace.
  std::uint64_t records = 0;
  /// Number of the oldest examined record in the thread's whole trace, counted back from the
  /// newest.
  std::uint64_t first = 0;
  std::optional<Record> last;  ///< The newest record.
  /// The calls that end with kOpen, outermost first.
  std::vector<CallFollower::Open> open;
  /// A run of records without a missing block. Runs are stored oldest first.
  struct Run {
    /// Position before the run's first record, in the units of Call::begin_position.
    std::uint64_t position = 0;
    std::uint64_t number = 0;  ///< Number of its first record.
  };
  std::vector<Run> runs;

  /// First position from which no block is missing: from there on a record's number is `first` +
  /// position.
  [[nodiscard]] std::uint64_t numbered_from() const {
    return runs.empty() ? 0 : runs.back().position;
  }
  /// Returns the position of the record with that number; nullopt if it is not among these records.
  [[nodiscard]] std::optional<std::uint64_t> position_of(std::uint64_t number) const;
};

/// Rebuilds the calls from the last `most` records, rounded up to whole blocks, before record
/// number `before`.
[[nodiscard]] ThreadCalls rebuild_calls(const TraceArchive& archive, std::uint32_t tid,
                                        std::uint64_t most, PastCode& insns, CodeMap& code,
                                        std::uint64_t before = ~0ULL);
/// Returns the number of the oldest of the last `records` records of the thread.
[[nodiscard]] std::uint64_t first_record(const TraceArchive& archive, std::uint32_t tid,
                                         std::uint64_t records);

/// Returns the number of records from the oldest signal on, among the last `most` (rounded up to
/// whole blocks); 0 if there is no signal.
/// @param place  Considers only signals that interrupted this instruction; 0 for all.
[[nodiscard]] std::uint64_t records_since_signal(const TraceArchive& archive, std::uint32_t tid,
                                                 std::uint64_t most, TraceeAddr place);

/// Returns the outermost signal handler that had not returned at the end, or had just returned to
/// `pc`, the instruction that it interrupted; kNoCall if there is none.
[[nodiscard]] std::size_t last_handler(std::span<const Call> calls, TraceeAddr pc);

/// Returns the calls as they were when the call at `index` began.
[[nodiscard]] ThreadCalls calls_before(const ThreadCalls& all, std::size_t index);

}  // namespace backtrail::decoder
