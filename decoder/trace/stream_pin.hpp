#pragma once
/// @file
/// A place in the stream, told to whoever asked when the records up to it have been handed on.
///
/// It travels as a record that is none, and arrives as a mark that is none: nobody but its owner
/// minds it.

#include "decoder/trace/record.hpp"
#include "decoder/trace/trace_mark.hpp"

namespace backtrail::decoder {

inline constexpr auto kPinRecord = static_cast<RecordKind>(0x80);
inline constexpr auto kPinMark = static_cast<MarkKind>(0x80);

/// `ahead`: so many numbers of a log, or records where there is no log, after what has been taken
/// until now.
[[nodiscard]] constexpr Record pin_record(std::uint64_t id, std::uint32_t ahead) {
  return {TraceeAddr{id}, TraceeAddr{}, kPinRecord, GapReason::kNone, LossBound::kExact, ahead};
}
/// `arriving`: so many records more lie before the place, and are handed on when it is known where
/// they go.
[[nodiscard]] constexpr TraceMark pin_mark(const Record& pin, std::int32_t arriving = 0) {
  return {.kind = kPinMark, .time_ns = 0, .cpu = arriving, .at = pin.from};
}
[[nodiscard]] constexpr std::uint64_t pin_id(const TraceMark& mark) {
  return mark.at.value();
}

}  // namespace backtrail::decoder
