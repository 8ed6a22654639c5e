// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The place of execution that a decoder of Intel PT has derived.

#include <optional>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

struct PtPlace {
  enum class Kind : std::uint8_t {
    kUnknown,  ///< Unknown for `reason`: the trace begins, or something is missing.
    kAt,       ///< At `here` according to a packet; nothing has run since.
    kBehind,   ///< After the instruction at `last`.
    kLeft,     ///< Tracing stopped after the instruction at `last`.
    kStopped,  ///< Tracing stopped before the instruction at `here`.
  };

  Kind kind = Kind::kUnknown;
  GapReason reason = GapReason::kStart;
  TraceeAddr here;
  TraceeAddr last;

  /// Reports that execution is at the instruction `at`. Returns the record of how it got there;
  /// nullopt if none is needed.
  std::optional<Record> arrive(TraceeAddr at, InsnCache& insns);
  /// Reports that something is missing.
  void interrupted_by(GapReason why) {
    if (kind != Kind::kUnknown) *this = {Kind::kUnknown, why, {}, {}};
  }
  /// Returns true if tracing was off, so that nothing is missing.
  [[nodiscard]] bool finished() const { return kind == Kind::kLeft || kind == Kind::kStopped; }
};

}  // namespace backtrail::decoder
