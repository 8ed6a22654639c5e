// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The arguments and results of a thread's last calls.

#include <cstdint>
#include <vector>

#include "decoder/report/code_places.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/report/value_source.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Most calls whose arguments are read.
inline constexpr std::size_t kMostValueCalls = 20;
/// Most records from the end to a call whose arguments are read: older values take long to recover.
inline constexpr std::uint64_t kMostValueRecords = 50'000;

/// Returns the last calls of functions outside of run-time libraries that have debug
/// information, oldest first. Calls whose beginning is not in the trace are left out, and those
/// before a missing part of it.
[[nodiscard]] std::vector<ReportCall> last_calls(const ThreadCalls& traced, std::uint32_t tid,
                                                 ValueSource& values, CodePlaces& places,
                                                 Symbols& symbols);

}  // namespace backtrail::decoder
