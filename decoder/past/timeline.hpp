// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The instructions that one thread executed, as positions that can be moved between.
///
/// Two consecutive records enclose a block of straight-line code. The newest block ends at the
/// thread's pc. A position names an instruction that the thread was about to execute:
///
///   records                   blocks                          positions
///   record n      ... -> A    block n:    A  A+2  A+5 (jump)  (n, 0) (n, 1) (n, 2)
///   record n + 1  A+5 -> B    block n+1:  B  ...              (n + 1, 0) ...
///
/// The position after the last executed instruction of the newest block is newest(): the thread's
/// own pc, whose instruction has not been executed.

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "decoder/past/record_sequence.hpp"
#include "decoder/trace/code_history.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

struct PastPosition {
  std::uint64_t block = 0;        ///< Number of the record with which the block begins.
  std::uint32_t instruction = 0;  ///< Number of executed instructions in the block before this one.
  TraceeAddr pc;

  friend std::strong_ordering operator<=>(const PastPosition& a, const PastPosition& b) {
    if (const auto order = a.block <=> b.block; order != 0) return order;
    return a.instruction <=> b.instruction;
  }
  friend bool operator==(const PastPosition& a, const PastPosition& b) {
    return a.block == b.block && a.instruction == b.instruction;
  }
};

class Timeline {
 public:
  /// Borrows its arguments. The history begins after the newest exec, because older addresses refer
  /// to another program's code.
  /// @param pc    The thread's pc now.
  /// @param code  Instructions whose bytes are known; all others are taken to be those in memory
  ///              now, except near known ones. May be null.
  Timeline(InsnCache& insns, RecordSequence& records, TraceeAddr pc, CodeHistory* code = nullptr);

  [[nodiscard]] const PastPosition& newest() const { return newest_; }

  /// The result of a move, and whether the trace lacks instructions in between.
  struct Move {
    PastPosition to;
    bool crossed_gap = false;
  };
  /// Returns the position of the instruction executed before. nullopt: the history begins here.
  std::optional<Move> back(const PastPosition& from);
  /// Returns the position after the instruction at `from`. nullopt: `from` is the newest.
  std::optional<Move> forward(const PastPosition& from);

  struct Search {
    PastPosition at;     ///< Position at which the search stopped.
    bool found = false;  ///< True if its pc is one of the addresses; false at the end of the
                         ///< history.
    bool crossed_gap = false;
  };
  /// Finds the nearest earlier position whose pc is in `stops`, or else the oldest position.
  Search search_back(const PastPosition& from, const std::set<TraceeAddr>& stops);
  /// Finds the nearest later position before `end` whose pc is in `stops`, or else `end`.
  Search search_forward(const PastPosition& from, const std::set<TraceeAddr>& stops,
                        const PastPosition& end);
  Search search_forward(const PastPosition& from, const std::set<TraceeAddr>& stops) {
    return search_forward(from, stops, newest_);
  }

  /// Returns the code and memory that the trace tells; may be null.
  [[nodiscard]] const CodeHistory* code() const { return code_; }

  /// The executed instructions of one block.
  struct Block {
    std::vector<TraceeAddr> pcs;  ///< In order; the branch of the next record comes last.
    bool after_gap = false;       ///< Instructions are missing before the block.
    bool begins_history = false;  ///< No instruction before the block can be shown.
    bool complete = true;  ///< False: some code could not be followed, and instructions are missing
                           ///< before the last one.
  };
  /// @param number Number of a record. The reference is valid until the next call of any method.
  const Block& block(std::uint64_t number);
  /// Returns the instruction that was executed at `pc` in a block; null if its bytes are not told.
  [[nodiscard]] const ExecutedInsn* executed(std::uint64_t number, TraceeAddr pc) {
    return code_ == nullptr ? nullptr : code_->at(number, pc);
  }

 private:
  [[nodiscard]] bool may_hold(const Record& begins, const Record& ends,
                              const std::set<TraceeAddr>& stops) const;
  [[nodiscard]] PastPosition first_after(std::uint64_t number);
  [[nodiscard]] Record end_of(std::uint64_t number);
  Block walk(std::uint64_t number);

  InsnCache& insns_;
  RecordSequence& records_;
  CodeHistory* code_;
  TraceeAddr pc_;
  PastPosition newest_;
  std::uint64_t walked_ = ~0ULL;  ///< Number of `walked_block_`.
  Block walked_block_;
};

}  // namespace backtrail::decoder
