#pragma once
/// @file
/// Following straight-line code between two branch records.

#include <cstdint>

#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// Longest block that is walked, in bytes. Compilers stay far below; a bound keeps wrong records
/// from walking through all of memory.
inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 20;

enum class WalkEnd : std::uint8_t {
  kReached,      ///< `stop` is an instruction boundary that straight-line execution arrives at.
  kUndecodable,  ///< Code on the way is unreadable or no instruction.
  kDiverged,     ///< Execution from `begin` cannot arrive at `stop` without a branch.
};

/// How a walk went.
struct Walk {
  WalkEnd end = WalkEnd::kDiverged;
  TraceeAddr at;    ///< Where the walk ended: `stop`, or the instruction that stopped it.
  TraceeAddr last;  ///< The last instruction walked over. Valid when instructions != 0.
  std::uint32_t instructions = 0;  ///< How many were walked over.

  [[nodiscard]] bool reached() const { return end == WalkEnd::kReached; }
};

/// Whether execution can go on behind an instruction of this kind without leaving a record.
[[nodiscard]] constexpr bool falls_through(arch::InsnKind kind) {
  using enum arch::InsnKind;
  return kind == kOther || kind == kConditionalJump || kind == kSystemCall || kind == kFarTransfer;
}

/// Walks the instructions from `begin` up to `stop`, `stop` itself excluded, and calls
/// `visit(pc, facts)` for each. Conditional jumps on the way were not taken; system calls and far
/// transfers came back behind themselves. Always ends: each step goes forward, at most
/// kMaxBlockBytes.
template <typename Visit>
Walk walk_block(InsnCache& insns, TraceeAddr begin, TraceeAddr stop, Visit&& visit) {
  Walk walk{WalkEnd::kDiverged, begin, begin, 0};
  if (stop < begin || stop - begin > kMaxBlockBytes) return walk;
  while (walk.at < stop) {
    const arch::InsnFacts& facts = insns.at(walk.at);
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

[[nodiscard]] Walk walk_block(InsnCache& insns, TraceeAddr begin, TraceeAddr stop);

}  // namespace backtrail::decoder
