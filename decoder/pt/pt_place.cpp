// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_place.hpp"

#include <utility>

#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {
namespace {

std::optional<Record> follow(InsnCache& insns, TraceeAddr from, TraceeAddr at, bool was_off) {
  const arch::InsnFacts& last = insns.at(from);
  const TraceeAddr behind = from + last.length;
  using enum arch::InsnKind;
  if (falls_through(last.kind) && at == behind) return std::nullopt;
  if (was_off && (last.kind == kOther || last.kind == kSystemCall)) {
    return gap(GapReason::kUnseenAsync, behind, at);
  }
  return branch(from, at);
}

}  // namespace

std::optional<Record> PtPlace::arrive(TraceeAddr at, InsnCache& insns) {
  const TraceeAddr before = std::exchange(here, at);
  switch (std::exchange(kind, Kind::kAt)) {
    case Kind::kUnknown:
      return gap(reason, TraceeAddr{}, at);
    case Kind::kAt:
      // A packet announces every such move, so here something is missing.
      if (at != before) return gap(GapReason::kUndecodable, before, at);
      break;
    case Kind::kBehind:
      return follow(insns, last, at, false);
    case Kind::kLeft:
      return follow(insns, last, at, true);
    case Kind::kStopped:
      if (at != before) return async_transfer(before, at);
      break;
  }
  return std::nullopt;
}

}  // namespace backtrail::decoder
