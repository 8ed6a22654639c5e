// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The code as a graph for Intel PT: an edge leads from one place where a packet decides to the
/// next.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "decoder/pt/code_pages.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// The end of an edge: which packet decides how execution continues.
enum class EdgeEnd : std::uint8_t {
  kConditional,   ///< A TNT bit, which leads to next[bit].
  kReturn,        ///< A TNT bit and the call stack, or a TIP.
  kContinue,      ///< No packet; leads to next[0].
  kSameWay,       ///< A TNT bit without effect; leads to next[0].
  kIndirect,      ///< A TIP.
  kIndirectCall,  ///< A TIP, and a call.
  kFar,           ///< A TIP or a stop of tracing: system calls and other far transfers.
  kNowhere,       ///< The code is unreadable or invalid.
  kUnwalked,      ///< Not known yet.
};

/// An edge: what runs from `begin` on until a packet decides. One cache line, because decoding
/// mostly follows `next`.
struct alignas(64) Edge {
  TraceeAddr begin;
  TraceeAddr last;  ///< The last instruction; invalid for kContinue, kNowhere and kUnwalked.
  /// The edges that `last` leads to. For edges that end with a TIP, the newest two targets.
  std::array<Edge*, 2> next{};
  TraceeAddr jump_from;  ///< The direct jump or call within the edge, if `jumps` is 1.
  TraceeAddr jump_to;
  /// The edge at the return address of that call, or of the call at the end.
  Edge* behind = nullptr;
  EdgeEnd end = EdgeEnd::kUnwalked;
  std::uint8_t jumps = 0;  ///< Direct jumps and calls within the edge: 0 or 1.
  std::uint8_t calls = 0;  ///< Calls within the edge.
  std::uint8_t last_length = 0;
  /// Increments for a step in FlowLanes; zero if TNT bits alone cannot decide.
  struct InLane {
    std::uint8_t returns = 0;
    std::uint8_t jumps = 0;
    std::uint8_t bits = 0;
    std::int8_t depth = 0;  ///< Change of the call stack's depth.
  } in_lane;

  [[nodiscard]] TraceeAddr after_last() const { return last + last_length; }
};
static_assert(sizeof(Edge) == 64);

/// The result of one TNT packet at one edge. Small, because decoding the next packet waits for it.
struct TntWay {
  std::uint64_t packet_at = 0;  ///< FlowGraph::packet_at(); 0 if unset.
  Edge* to = nullptr;
};

/// The records of a TntWay, and its other effects. Only for paths that use the call stack for at
/// most one return, one call, or a return followed by a call.
struct alignas(64) TntMemo {
  static constexpr std::size_t kMaxRecords = 8;

  /// Owner of this slot. The owner's first visit does not fill the slot, because few paths are
  /// taken twice.
  std::uint64_t packet_at = 0;
  Edge* returned_to = nullptr;  ///< Where the return led; null if there is none.
  Edge* called_from = nullptr;  ///< Where the call returns to; null if there is none.
  std::uint8_t tries = 0;       ///< Visits by others until the slot changes its owner.
  std::uint8_t calls = 0;
  std::uint8_t held = 0;   ///< FlowWalk::held() at the end.
  std::uint8_t count = 0;  ///< Number of records.
  std::array<Record, kMaxRecords> records;

  /// Appends the records at `out`, which must have room for kMaxRecords: copies of a fixed size are
  /// the fastest.
  Record* repeat(Record* out) const {
    constexpr std::size_t kHalf = kMaxRecords / 2;
    std::copy_n(records.begin(), kHalf, out);
    if (count > kHalf) std::copy_n(records.begin() + kHalf, kHalf, out + kHalf);
    return out + count;
  }
};
static_assert(sizeof(TntMemo) == 256);

/// The edges of one address space, created on demand.
class FlowGraph {
 public:
  /// Borrows `code`.
  explicit FlowGraph(CodeReader& code);
  FlowGraph(const FlowGraph&) = delete;
  FlowGraph& operator=(const FlowGraph&) = delete;

  /// Drops all edges if the code has changed or there are too many. Edges are valid until then.
  void refresh();
  /// Returns the edge that begins at `address`; it may be kUnwalked.
  [[nodiscard]] Edge* at(TraceeAddr address) {
    for (std::size_t slot = slot_of(address);; ++slot) {
      const Slot& found = slots_[slot & mask_];
      if (found.edge == nullptr) return make(address);
      if (found.begin == address) return found.edge;
    }
  }
  /// Follows the code of an edge that is kUnwalked.
  void walk(Edge& edge);
  /// Returns a number that identifies the edge.
  [[nodiscard]] static std::uint64_t number_of(const Edge* edge) {
    // Copied bytewise, because clang-tidy 14 crashes on arithmetic with a cast pointer.
    std::uint64_t number = 0;
    std::memcpy(&number, &edge, sizeof number);
    return number;
  }
  /// Returns a number that identifies the packet and the edge.
  [[nodiscard]] static std::uint64_t packet_at(const Edge* edge, std::uint8_t packet) {
    return number_of(edge) ^ (std::uint64_t{packet} << 56U);
  }
  /// Returns the memo slot for a packet at an edge. Others may share the slot.
  [[nodiscard]] static std::size_t memo_slot(const Edge* edge, std::uint8_t packet) {
    // Without a multiplication, which has a long latency.
    constexpr std::size_t kSpread = 0x9e5;
    return ((number_of(edge) >> 6U) ^ (packet * kSpread)) & (kMemos - 1);
  }
  [[nodiscard]] TntWay& way(std::size_t memo_slot) { return ways_[memo_slot]; }
  [[nodiscard]] TntMemo& memo(std::size_t memo_slot) { return memos_[memo_slot]; }
  [[nodiscard]] InsnCache& insns() { return insns_; }
  [[nodiscard]] arch::Isa isa() const { return pages_.isa(); }
  [[nodiscard]] std::size_t size() const { return edges_.size(); }

 private:
  struct Slot {
    TraceeAddr begin;
    Edge* edge = nullptr;
  };

  [[nodiscard]] std::size_t slot_of(TraceeAddr address) const {
    // Fibonacci hashing: the high bits of a product with 2^64 / phi.
    return (address.value() * 0x9e37'79b9'7f4a'7c15U) >> shift_;
  }
  Edge* make(TraceeAddr address);
  void insert(Edge* edge);
  void forget();
  bool end_edge(Edge& edge, TraceeAddr pc, const arch::InsnFacts& facts);

  static constexpr std::size_t kMemos = 1024;  // A quarter of a CPU's second-level cache.

  CodePages pages_;
  InsnCache insns_{pages_};
  std::deque<Edge> edges_;  // A deque keeps addresses stable.
  std::vector<Slot> slots_;
  std::vector<TntWay> ways_;
  std::vector<TntMemo> memos_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

}  // namespace backtrail::decoder
