// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A sentinel in the record stream. Its owner learns when the records before it have been handed
/// on.
///
/// The sentinel enters as a pseudo record and leaves as a pseudo mark. Other consumers ignore it.

#include "decoder/trace/record.hpp"
#include "decoder/trace/trace_mark.hpp"

namespace backtrail::decoder {

inline constexpr auto kPinRecord = static_cast<RecordKind>(0x80);
inline constexpr auto kPinMark = static_cast<MarkKind>(0x80);

/// Makes a sentinel. `ahead` is its distance from what has been taken so far: in log entries, or in
/// records if there is no log.
[[nodiscard]] constexpr Record pin_record(std::uint64_t id, std::uint32_t ahead) {
  return {TraceeAddr{id}, TraceeAddr{}, kPinRecord, GapReason::kNone, LossBound::kExact, ahead};
}
/// Makes the mark. `arriving` is the number of records before the sentinel that are not handed on
/// yet, because their targets are unknown.
[[nodiscard]] constexpr TraceMark pin_mark(const Record& pin, std::int32_t arriving = 0) {
  return {.kind = kPinMark, .time_ns = 0, .cpu = arriving, .at = pin.from};
}
[[nodiscard]] constexpr std::uint64_t pin_id(const TraceMark& mark) {
  return mark.at.value();
}

}  // namespace backtrail::decoder
