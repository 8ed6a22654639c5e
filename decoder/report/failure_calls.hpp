// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls by which a program says that something is wrong: panics, failed assertions, sanitizers'
/// reports, exceptions. A thread can make one and go on, or end, long before its process does.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "decoder/calls/call.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// How much a function's name says, weakest first.
enum class FailureSign : std::uint8_t {
  kNone,
  kName,    ///< A word in the name: fail, panic, assert, fatal.
  kLeave,   ///< Leaves its callers: exceptions, pthread_exit. Happens without a failure, too.
  kSure,    ///< Is called only on a failure.
  kReport,  ///< The recorder saw a sanitizer begin its report there.
};
/// `function` is demangled.
[[nodiscard]] FailureSign failure_sign(std::string_view function);

struct FailureCall {
  std::size_t index = kNoCall;  ///< The outermost call that belongs to the failure.
  FailureSign sign = FailureSign::kNone;
};
/// The newest of the calls with the strongest sign, `least` or stronger; index kNoCall if there is
/// none. A call does not count if another such call made it, or if its beginning is missing and
/// there is an older call with the same sign. For an exception that nobody catches, the result is
/// the call that threw it.
/// @param calls      Callers first.
/// @param only_open  Only calls that had not returned, nor been left, at the end.
[[nodiscard]] FailureCall find_failure(std::span<const Call> calls, Symbols& symbols,
                                       FailureSign least, bool only_open);

/// How many records of the last `most`, or a few more, there are from the oldest branch to a
/// function of sign kSure on, or else from the newest one to the strongest that is `least` or
/// stronger; 0: there is none.
[[nodiscard]] std::uint64_t records_since_failure(const TraceArchive& archive, std::uint32_t tid,
                                                  std::uint64_t most, FailureSign least,
                                                  Symbols& symbols);

/// How strongly what the last `most` records, or a few more, led to tells of a failure; 0: not at
/// all. More signs of different kinds weigh more: a thread that failed and left is worse than those
/// that only left.
[[nodiscard]] unsigned failure_weight(const TraceArchive& archive, std::uint32_t tid,
                                      std::uint64_t most, Symbols& symbols);

/// Where a call was made: if it took the place of another by a jump, where that one was.
[[nodiscard]] TraceeAddr made_at(std::span<const Call> calls, std::size_t index);

/// The sanitizer's outermost call among those that were open at `position`, where its report began;
/// kNoCall if no call was.
[[nodiscard]] std::size_t report_call(std::span<const Call> calls, Symbols& symbols,
                                      std::uint64_t position);

}  // namespace backtrail::decoder
