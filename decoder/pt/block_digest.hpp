#pragma once
/// @file
/// What the encoder must know of a block, worked out once.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/block_walker.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// A place inside a block where a decoder must be told that execution went on at the next
/// instruction: behind a system call or a far transfer.
struct Resumption {
  std::uint32_t not_taken;  ///< Conditional jumps passed since the last resumption.
  TraceeAddr at;
};

/// How the instruction that ends a block leaves it, as the encoder tells them apart.
enum class BlockExit : std::uint8_t {
  kNone,         ///< No branch instruction.
  kConditional,  ///< To `target`, when taken.
  kDirect,       ///< To `target`.
  kDirectCall,   ///< To `target`, with a return address behind the call.
  kNextCall,     ///< A direct call of the next instruction, which reads the pc: no return.
  kIndirect,     ///< Anywhere; far transfers too.
  kIndirectCall,
  kReturn,
};

/// A block that ends with the branch instruction at begin + span. 32 bytes: two a cache line.
struct BlockDigest {
  TraceeAddr begin;
  TraceeAddr target;              ///< Of direct jumps and calls.
  std::uint32_t span = 0;         ///< From begin to the last instruction, in bytes.
  std::uint32_t not_taken = 0;    ///< Conditional jumps passed since the last resumption.
  std::uint32_t resumptions = 0;  ///< 1 + index of the list of them; 0 = there are none.
  BlockExit exit = BlockExit::kNone;
  std::uint8_t exit_length = 0;  ///< Of the last instruction; 0 marks an empty slot.

  [[nodiscard]] TraceeAddr behind() const { return begin + span + exit_length; }
};
static_assert(sizeof(BlockDigest) == 32);

/// What lies on the way through straight-line code.
struct Passage {
  std::vector<Resumption> resumptions;
  std::uint32_t not_taken = 0;  ///< Since the last resumption.
  Walk walk;
};

/// Walks from `begin` up to `stop`, which is not passed.
[[nodiscard]] Passage walk_passage(InsnCache& insns, TraceeAddr begin, TraceeAddr stop);

/// Digests by (begin, address of the last instruction): a hash table with open addressing.
/// Forgets everything when code changed, and when it grows past a bound.
class BlockDigests {
 public:
  /// 32 MiB of digests; a program that runs more blocks than that starts afresh.
  static constexpr unsigned kMaxSlotBits = 20;

  /// `insns` is borrowed. At most 2^(max_slot_bits - 1) digests are kept at a time.
  explicit BlockDigests(InsnCache& insns, unsigned max_slot_bits = kMaxSlotBits);

  /// Forgets digests of code that may have changed. Call before a row of find().
  void refresh();
  /// The digest, or null when the code cannot be followed from `begin` to the end of the
  /// instruction at `last` (which is not remembered). Valid until the next call.
  [[nodiscard]] const BlockDigest* find(TraceeAddr begin, TraceeAddr last) {
    const std::uint64_t span = last - begin;
    for (std::size_t slot = slot_of(begin, span);; ++slot) {
      const BlockDigest& digest = slots_[slot & mask_];
      if (digest.exit_length == 0) return make(begin, last);
      if (digest.begin == begin && digest.span == span) return &digest;
    }
  }
  /// Says that find(begin, last) will be called soon.
  void prefetch(TraceeAddr begin, TraceeAddr last) const {
    __builtin_prefetch(&slots_[slot_of(begin, last - begin)]);
  }
  [[nodiscard]] std::span<const Resumption> resumptions(const BlockDigest& digest) const {
    if (digest.resumptions == 0) return {};
    return resumptions_[digest.resumptions - 1];
  }
  [[nodiscard]] InsnCache& insns() const { return insns_; }
  /// How many digests are kept now.
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
  std::vector<BlockDigest> slots_;  // a power of two of them, at most half full
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::size_t used_ = 0;
  std::vector<std::vector<Resumption>> resumptions_;
};

}  // namespace backtrail::decoder
