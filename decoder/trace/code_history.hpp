// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The instructions that a thread executed, where its trace tells their bytes.

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/page.hpp"
#include "arch/isa.hpp"
#include "decoder/trace/constant_memory.hpp"
#include "decoder/trace/executed_insn.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

/// Made of the facts of code and memory (arch::is_of_code, arch::is_of_memory) of one thread.
class CodeHistory {
 public:
  /// @param facts  Sorted by record and numbered as the thread's records; others are ignored.
  CodeHistory(arch::Isa isa, std::span<const ValueFact> facts);

  /// Returns true if the bytes of code near `pc` are told at any place. What ran at `pc` where
  /// they are not told may have been anything then.
  [[nodiscard]] bool tells_near(TraceeAddr pc) const { return pages_.contains(page_of(pc)); }
  /// Returns the instruction at `pc` in the block of straight-line code that begins with a record;
  /// null if its bytes are not told. Valid as long as this object.
  const ExecutedInsn* at(std::uint64_t record, TraceeAddr pc);
  /// Returns true if what ran in [begin, end) in that block is what memory has at the end. Traces
  /// that do not tell since when memory was constant do not tell this either, but for code near
  /// told one; true then.
  [[nodiscard]] bool is_as_at_end(std::uint64_t record, TraceeAddr begin, TraceeAddr end) const;

  /// Since when memory was constant.
  [[nodiscard]] const ConstantMemory& constant() const { return constant_; }

 private:
  static std::uint64_t page_of(TraceeAddr at) { return at.value() / kPageBytes; }

  /// Contains what a fact tells of the bytes of a granule that are set in `mask`.
  struct Piece {
    std::uint64_t record = 0;
    std::uint64_t value = 0;
    std::uint64_t mask = 0;
    bool is_known = true;
  };
  /// Copies the bytes from `pc` on. Returns how many are known before the first other one.
  [[nodiscard]] std::size_t copy(std::uint64_t record, TraceeAddr pc,
                                 std::span<std::uint8_t> out) const;

  arch::Isa isa_;
  /// By address, a multiple of eight: what was told of it, oldest first.
  std::unordered_map<std::uint64_t, std::vector<Piece>> granules_;
  ConstantMemory constant_;
  std::unordered_set<std::uint64_t> pages_;  ///< Numbers of the pages of all granules.
  std::unordered_map<TraceeAddr, std::vector<std::unique_ptr<ExecutedInsn>>> insns_;
};

/// Returns the facts of the instruction that a thread executed at `pc` in the block that begins
/// with a record; length 0 if it is not known.
/// @param code    What its trace tells; may be null.
/// @param at_end  The code that is in memory at the end.
[[nodiscard]] const arch::InsnFacts& executed_facts(CodeHistory* code, InsnCache& at_end,
                                                    std::uint64_t record, TraceeAddr pc);

}  // namespace backtrail::decoder
