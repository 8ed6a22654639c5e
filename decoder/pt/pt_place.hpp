#pragma once
/// @file
/// Where a decoder of Intel PT knows execution to be.

#include <optional>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

struct PtPlace {
  enum class Kind : std::uint8_t {
    kUnknown,  ///< Nothing was seen yet, or something is missing, for `reason`.
    kAt,       ///< At `here`, nothing executed since a packet said so.
    kBehind,   ///< Behind the instruction at `last`.
    kLeft,     ///< Tracing stopped behind the instruction at `last`.
    kStopped,  ///< It stopped before the instruction at `here`.
  };

  Kind kind = Kind::kUnknown;
  GapReason reason = GapReason::kStart;
  TraceeAddr here;
  TraceeAddr last;

  /// Execution turns out to be before the instruction at `at`. Returns the record of how it came
  /// there, if that needs one.
  std::optional<Record> arrive(TraceeAddr at, InsnCache& insns);
  /// Something is missing.
  void interrupted_by(GapReason why) {
    if (kind != Kind::kUnknown) *this = {Kind::kUnknown, why, {}, {}};
  }
  /// Nothing is missing: tracing was off.
  [[nodiscard]] bool finished() const { return kind == Kind::kLeft || kind == Kind::kStopped; }
};

}  // namespace backtrail::decoder
