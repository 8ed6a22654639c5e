#pragma once
/// @file
/// The calls of one thread of a crash file, from its newest records.

#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/report/call_fold.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

struct ThreadCalls {
  std::vector<Call> calls;
  std::vector<GapMark> gaps;  ///< Without the one that a trace begins with.
  std::uint64_t records = 0;
  std::uint64_t first = 0;     ///< Number of the oldest one in the thread's whole trace.
  std::optional<Record> last;  ///< The newest.
};

/// From the last `most` records or a few more.
[[nodiscard]] ThreadCalls rebuild_calls(const TraceArchive& archive, std::uint32_t tid,
                                        std::uint64_t most, InsnCache& insns, CodeMap& code);
/// Number of the oldest of so many that end the thread's trace.
[[nodiscard]] std::uint64_t first_record(const TraceArchive& archive, std::uint32_t tid,
                                         std::uint64_t records);

}  // namespace backtrail::decoder
