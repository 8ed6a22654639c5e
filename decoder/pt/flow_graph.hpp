#pragma once
/// @file
/// The code as Intel PT sees it: from one place where a packet decides to the next.

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

/// How a leg ends: which packet says how execution goes on.
enum class LegEnd : std::uint8_t {
  kConditional,   ///< A TNT bit: to next[bit].
  kReturn,        ///< A TNT bit, and the call stack; or a TIP.
  kContinue,      ///< None: to next[0].
  kSameWay,       ///< A TNT bit that changes nothing: to next[0].
  kIndirect,      ///< A TIP.
  kIndirectCall,  ///< A TIP; it returns to `behind`.
  kFar,           ///< A TIP, or tracing stops: system calls and other far transfers.
  kNowhere,       ///< The code there is unreadable, or no instruction.
  kUnwalked,      ///< Not known yet.
};

/// What execution does from `begin` on until a packet decides. One cache line: following a trace
/// is little else but following `next`.
struct alignas(64) Leg {
  TraceeAddr begin;
  TraceeAddr last;  ///< The instruction that ends it; not of kContinue, kNowhere, kUnwalked.
  /// Where `last` leads; of legs that end with a TIP, where it led last.
  std::array<Leg*, 2> next{};
  TraceeAddr jump_from;  ///< Of the direct jump or call on the way, if there is one.
  TraceeAddr jump_to;
  Leg* behind = nullptr;  ///< Where that call, or the one at the end, returns to.
  LegEnd end = LegEnd::kUnwalked;
  std::uint8_t jumps = 0;  ///< Direct jumps and calls on the way: 0 or 1.
  std::uint8_t calls = 0;  ///< Calls among them.
  std::uint8_t last_length = 0;
  /// What FlowLanes counts of it; nothing where more than bits must say how it goes on.
  struct InLane {
    std::uint8_t returns = 0;
    std::uint8_t jumps = 0;
    std::uint8_t bits = 0;
    std::int8_t depth = 0;  ///< What it adds to the call stack.
  } in_lane;

  [[nodiscard]] TraceeAddr after_last() const { return last + last_length; }
};
static_assert(sizeof(Leg) == 64);

/// One TNT packet at one leg, and where its bits lead. Small, for the next packet waits for it.
struct TntWay {
  std::uint64_t packet_at = 0;  ///< FlowGraph::packet_at(); 0 = none.
  Leg* to = nullptr;
};

/// The records on that way, and what else it does. For paths whose only use of the call stack is
/// one return, one call, or the one and then the other.
struct alignas(64) TntMemo {
  static constexpr std::size_t kMaxRecords = 8;

  /// Whose place this is. It has a way not at the first time: few paths are taken twice.
  std::uint64_t packet_at = 0;
  Leg* returned_to = nullptr;  ///< What the return found, if there was one.
  Leg* called_from = nullptr;  ///< Where the call returns to, if there was one.
  std::uint8_t tries = 0;      ///< So many others may come before this one gives its place up.
  std::uint8_t calls = 0;
  std::uint8_t held = 0;   ///< FlowDecoder's, at the end.
  std::uint8_t count = 0;  ///< Of the records.
  std::array<Record, kMaxRecords> records;

  /// Appends the records at `out`, which has room for all that there could be: copies of a fixed
  /// size are the fastest.
  Record* repeat(Record* out) const {
    constexpr std::size_t kHalf = kMaxRecords / 2;
    std::copy_n(records.begin(), kHalf, out);
    if (count > kHalf) std::copy_n(records.begin() + kHalf, kHalf, out + kHalf);
    return out + count;
  }
};
static_assert(sizeof(TntMemo) == 256);

/// The legs of one address space, made as they are needed.
class FlowGraph {
 public:
  /// `code` is borrowed.
  explicit FlowGraph(CodeReader& code);
  FlowGraph(const FlowGraph&) = delete;
  FlowGraph& operator=(const FlowGraph&) = delete;

  /// Forgets everything if the code is no longer what it was, or if there is too much of it. Legs
  /// are valid until then.
  void refresh();
  /// The leg that begins at `address`, perhaps not walked yet.
  [[nodiscard]] Leg* at(TraceeAddr address) {
    for (std::size_t slot = slot_of(address);; ++slot) {
      const Slot& found = slots_[slot & mask_];
      if (found.leg == nullptr) return make(address);
      if (found.begin == address) return found.leg;
    }
  }
  /// Follows the code of a leg that is kUnwalked.
  void walk(Leg& leg);
  /// A number that no other leg has.
  [[nodiscard]] static std::uint64_t number_of(const Leg* leg) {
    // By its bytes: clang-tidy 14 ends by SIGSEGV at arithmetic with a pointer that was cast.
    std::uint64_t number = 0;
    std::memcpy(&number, &leg, sizeof number);
    return number;
  }
  /// A number that no other packet or leg has.
  [[nodiscard]] static std::uint64_t packet_at(const Leg* leg, std::uint8_t packet) {
    return number_of(leg) ^ (std::uint64_t{packet} << 56U);
  }
  /// The place for what is known of it; perhaps it is taken by another.
  [[nodiscard]] static std::size_t memo_slot(const Leg* leg, std::uint8_t packet) {
    // Without a product, which would come late.
    constexpr std::size_t kSpread = 0x9e5;
    return ((number_of(leg) >> 6U) ^ (packet * kSpread)) & (kMemos - 1);
  }
  [[nodiscard]] TntWay& way(std::size_t memo_slot) { return ways_[memo_slot]; }
  [[nodiscard]] TntMemo& memo(std::size_t memo_slot) { return memos_[memo_slot]; }
  [[nodiscard]] InsnCache& insns() { return insns_; }
  [[nodiscard]] arch::Isa isa() const { return pages_.isa(); }
  [[nodiscard]] std::size_t size() const { return legs_.size(); }

 private:
  struct Slot {
    TraceeAddr begin;
    Leg* leg = nullptr;
  };

  [[nodiscard]] std::size_t slot_of(TraceeAddr address) const {
    // Fibonacci hashing: the high bits of a product with 2^64 / phi.
    return (address.value() * 0x9e37'79b9'7f4a'7c15U) >> shift_;
  }
  Leg* make(TraceeAddr address);
  void insert(Leg* leg);
  void forget();
  bool end_leg(Leg& leg, TraceeAddr pc, const arch::InsnFacts& facts);

  static constexpr std::size_t kMemos = 1024;  // a quarter of a CPU's second cache

  CodePages pages_;
  InsnCache insns_{pages_};
  std::deque<Leg> legs_;  // where they stay
  std::vector<Slot> slots_;
  std::vector<TntWay> ways_;
  std::vector<TntMemo> memos_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

}  // namespace backtrail::decoder
