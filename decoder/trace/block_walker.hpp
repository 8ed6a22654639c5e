// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Follows straight-line code between two branch records.

#include <cstdint>
#include <utility>

#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// Longest block that is walked, in bytes. Compiled code stays far below. The bound keeps a wrong
/// record from causing a walk through all of memory.
inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 20;

enum class WalkEnd : std::uint8_t {
  kReached,      ///< `stop` is an instruction boundary that straight-line execution reaches.
  kUndecodable,  ///< Code before `stop` is unreadable or invalid.
  kDiverged,     ///< Execution from `begin` cannot reach `stop` without a branch.
};

/// The result of a walk.
struct Walk {
  WalkEnd end = WalkEnd::kDiverged;
  TraceeAddr at;    ///< Where the walk ended: `stop`, or the instruction that ended it.
  TraceeAddr last;  ///< The last instruction passed; valid if instructions != 0.
  std::uint32_t instructions = 0;  ///< Number of instructions passed.

  [[nodiscard]] bool reached() const { return end == WalkEnd::kReached; }
};

/// Returns true if execution can continue after an instruction of this kind without a record.
[[nodiscard]] constexpr bool falls_through(arch::InsnKind kind) {
  using enum arch::InsnKind;
  return kind == kOther || kind == kConditionalJump || kind == kSystemCall || kind == kFarTransfer;
}

/// Walks the instructions in [begin, stop) and calls `visit(pc, facts)` for each. Conditional jumps
/// count as not taken; system calls and far transfers as returning to the next instruction. The
/// walk is bounded by kMaxBlockBytes. `facts_at` returns the facts of the instruction at a pc.
template <typename FactsAt, typename Visit>
Walk walk_insns(FactsAt facts_at, TraceeAddr begin, TraceeAddr stop, Visit&& visit) {
  Walk walk{WalkEnd::kDiverged, begin, begin, 0};
  if (stop < begin || stop - begin > kMaxBlockBytes) return walk;
  while (walk.at < stop) {
    const arch::InsnFacts& facts = facts_at(walk.at);
    if (!facts.known()) {
      walk.end = WalkEnd::kUndecodable;
      return walk;
    }
    if (!falls_through(facts.kind) || stop - walk.at < facts.length) return walk;
    visit(walk.at, facts);
    walk.last = walk.at;
    walk.at += facts.length;
    ++walk.instructions;
  }
  walk.end = WalkEnd::kReached;
  return walk;
}

/// As walk_insns(), of the code that is in memory now.
template <typename Visit>
Walk walk_block(InsnCache& insns, TraceeAddr begin, TraceeAddr stop, Visit&& visit) {
  return walk_insns([&](TraceeAddr pc) -> const arch::InsnFacts& { return insns.at(pc); }, begin,
                    stop, std::forward<Visit>(visit));
}

[[nodiscard]] Walk walk_block(InsnCache& insns, TraceeAddr begin, TraceeAddr stop);

}  // namespace backtrail::decoder
