#pragma once
/// @file
/// The calls of one thread of a crash file, from its newest records.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/calls/call_follower.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/call_fold.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

struct ThreadCalls {
  std::vector<Call> calls;
  std::vector<GapMark> gaps;  ///< Without the one that a trace begins with.
  std::uint64_t records = 0;
  /// Number of the oldest one in the thread's whole trace, counted back from the newest.
  std::uint64_t first = 0;
  std::optional<Record> last;  ///< The newest.
  /// Of the calls that end by kOpen, in their order.
  std::vector<CallFollower::Open> open;
  /// Runs of records without a missing block, oldest first.
  struct Run {
    std::uint64_t position = 0;  ///< As in Call, of its first record less one.
    std::uint64_t number = 0;    ///< Of its first record.
  };
  std::vector<Run> runs;

  /// From this position on `first` + position is a record's number: no block is missing behind it.
  [[nodiscard]] std::uint64_t numbered_from() const {
    return runs.empty() ? 0 : runs.back().position;
  }
  /// Where the record of that number stands, as Call's positions; nullopt: it is not among these.
  [[nodiscard]] std::optional<std::uint64_t> position_of(std::uint64_t number) const;
};

/// From the last `most` records, or a few more, of those before the one of number `before`.
[[nodiscard]] ThreadCalls rebuild_calls(const TraceArchive& archive, std::uint32_t tid,
                                        std::uint64_t most, InsnCache& insns, CodeMap& code,
                                        std::uint64_t before = ~0ULL);
/// Number of the oldest of so many that end the thread's trace.
[[nodiscard]] std::uint64_t first_record(const TraceArchive& archive, std::uint32_t tid,
                                         std::uint64_t records);

/// How many records of the last `most`, or a few more, there are from the oldest signal on; 0: no
/// signal.
/// @param place  Signals that interrupted this only; 0: any.
[[nodiscard]] std::uint64_t records_since_signal(const TraceArchive& archive, std::uint32_t tid,
                                                 std::uint64_t most, TraceeAddr place);

/// The outermost signal handler that had not returned at the end, or had just returned to `pc`,
/// where it had come from; kNoCall: there is none.
[[nodiscard]] std::size_t last_handler(std::span<const Call> calls, TraceeAddr pc);

/// What there was when the call at `index` began.
[[nodiscard]] ThreadCalls calls_before(const ThreadCalls& all, std::size_t index);

}  // namespace backtrail::decoder
