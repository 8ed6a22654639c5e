// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Facts about a block that the encoder needs, computed once.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/block_walker.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// A place inside a block, after a system call or a far transfer, where a decoder must be told that
/// execution continued at the next instruction.
struct Resumption {
  std::uint32_t not_taken;  ///< Conditional jumps not taken since the last resumption.
  TraceeAddr at;
};

/// How the last instruction of a block leaves it, as far as the encoder cares.
enum class BlockExit : std::uint8_t {
  kNone,         ///< Not a branch instruction.
  kConditional,  ///< To `target` if taken.
  kDirect,       ///< To `target`.
  kDirectCall,   ///< To `target`, with a return address after the call.
  kNextCall,  ///< A direct call of the next instruction, which reads the pc; nothing returns to it.
  kIndirect,  ///< To any address; includes far transfers.
  kIndirectCall,
  kReturn,
};

/// A block that ends with the branch instruction at begin + span. 32 bytes, so two fit in a cache
/// line.
struct BlockDigest {
  TraceeAddr begin;
  TraceeAddr target;              ///< Target of a direct jump or call.
  std::uint32_t span = 0;         ///< Bytes from begin to the last instruction.
  std::uint32_t not_taken = 0;    ///< Conditional jumps not taken since the last resumption.
  std::uint32_t resumptions = 0;  ///< 1 + index of its list of resumptions; 0 if there are none.
  BlockExit exit = BlockExit::kNone;
  std::uint8_t exit_length = 0;  ///< Length of the last instruction; 0 marks an empty slot.

  [[nodiscard]] TraceeAddr behind() const { return begin + span + exit_length; }
};
static_assert(sizeof(BlockDigest) == 32);

/// The branches and resumptions on a walk through straight-line code.
struct Passage {
  std::vector<Resumption> resumptions;
  std::uint32_t not_taken = 0;  ///< Conditional jumps not taken since the last resumption.
  Walk walk;
};

/// Walks from `begin` up to `stop`, which is excluded.
[[nodiscard]] Passage walk_passage(InsnCache& insns, TraceeAddr begin, TraceeAddr stop);

/// Digests by (begin, address of the last instruction) in a hash table with open addressing. All
/// are dropped when code changes or the table exceeds its bound.
class BlockDigests {
 public:
  /// Bound of 32 MiB; a program with more blocks starts over.
  static constexpr unsigned kMaxSlotBits = 20;

  /// Borrows `insns`. Keeps at most 2^(max_slot_bits - 1) digests at a time.
  explicit BlockDigests(InsnCache& insns, unsigned max_slot_bits = kMaxSlotBits);

  /// Drops the digests if code may have changed. Call before a series of find().
  void refresh();
  /// Returns the digest; null if the code cannot be followed from `begin` through the instruction
  /// at `last` (failures are not cached). Valid until the next call.
  [[nodiscard]] const BlockDigest* find(TraceeAddr begin, TraceeAddr last) {
    const std::uint64_t span = last - begin;
    for (std::size_t slot = slot_of(begin, span);; ++slot) {
      const BlockDigest& digest = slots_[slot & mask_];
      if (digest.exit_length == 0) return make(begin, last);
      if (digest.begin == begin && digest.span == span) return &digest;
    }
  }
  /// Announces that find(begin, last) will be called soon.
  void prefetch(TraceeAddr begin, TraceeAddr last) const {
    __builtin_prefetch(&slots_[slot_of(begin, last - begin)]);
  }
  [[nodiscard]] std::span<const Resumption> resumptions(const BlockDigest& digest) const {
    if (digest.resumptions == 0) return {};
    return resumptions_[digest.resumptions - 1];
  }
  [[nodiscard]] InsnCache& insns() const { return insns_; }
  /// Returns the number of digests kept.
  [[nodiscard]] std::size_t size() const { return used_; }

 private:
  [[nodiscard]] std::size_t slot_of(TraceeAddr begin, std::uint64_t span) const {
    // Fibonacci hashing: the high bits of a product with 2^64 / phi.
    return ((begin.value() + (span << 32U)) * 0x9e37'79b9'7f4a'7c15U) >> shift_;
  }
  const BlockDigest* make(TraceeAddr begin, TraceeAddr last);
  const BlockDigest& insert(const BlockDigest& digest);
  void forget();

  InsnCache& insns_;
  unsigned max_slot_bits_;
  std::uint64_t generation_;
  std::vector<BlockDigest> slots_;  // Their number is a power of two; at most half are used.
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::size_t used_ = 0;
  std::vector<std::vector<Resumption>> resumptions_;
};

}  // namespace backtrail::decoder
