#pragma once
/// @file
/// From a CPU's raw (from, to) pairs to neutral records: losses become gaps, the kernel's addresses
/// become marks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder::perf {

/// How much is missing.
struct Loss {
  std::uint64_t count = 0;  ///< 0 = unknown.
  LossBound bound = LossBound::kExact;
  GapReason reason = GapReason::kOverflow;
};

/// Both together; the worse bound wins.
[[nodiscard]] Loss operator+(const Loss& a, const Loss& b);

/// Whose branches are told.
enum class Levels : std::uint8_t {
  kUser,  ///< The program's; of the kernel's only that it was entered and left.
  kAll,   ///< Both, as they are.
};

/// Records of one thread, in order. With Levels::kAll a pair is a record. Else pairs with a kernel
/// end never get out as addresses:
///
///     user -> kernel, kernel -> user behind the system call    nothing: straight-line code
///     ... to the place it left, no system call there           nothing: an interrupt or a fault
///     ... to anywhere else                                     kAsync (a signal), or the branch
///                                                              that the system call was
///
/// and both ends are told as marks, except where nothing but an interrupt or a fault happened.
class BranchAssembler {
 public:
  /// Both are borrowed. Without `insns` nothing is known of what led into the kernel: it counts as
  /// asynchronous.
  BranchAssembler(InsnCache* insns, TraceConsumer& sink, Levels levels = Levels::kUser);

  /// Recording begins with the thread at `pc` (0 = unknown: the first pair says).
  void start(TraceeAddr pc);
  /// BTS records of 24 bytes; a part of one at the end is ignored.
  void raw_records(std::span<const std::uint8_t> bytes);
  void pair(std::uint64_t from, std::uint64_t to) {
    if (((from | to) >> 63U) != 0 || from == 0 || unusual_) {
      unusual_pair(from, to);
    } else {
      push(branch(TraceeAddr{from}, TraceeAddr{to}));
    }
  }
  /// Something is missing here; becomes one gap before the next record.
  void lost(const Loss& loss);
  void mark(const TraceMark& mark);
  /// A record that did not come from the hardware: the debugger moved the pc, the program execed.
  void insert(const Record& record);
  /// Hands everything on. The thread is at `pc`, if that is known: a loss that nothing followed
  /// becomes a gap that ends there.
  void flush(std::optional<TraceeAddr> pc = std::nullopt);

  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }
  /// Pairs that were no branch: a from of 0.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::size_t kBatch = 4096;

  void push(const Record& record) {
    batch_.push_back(record);
    if (batch_.size() == kBatch) hand_on();
  }
  void hand_on();
  void unusual_pair(std::uint64_t from, std::uint64_t to);
  void left(std::uint64_t from);
  void came_back(std::uint64_t to);
  void close_loss(TraceeAddr to);

  /// The thread left for the kernel at `from`.
  struct Departure {
    TraceeAddr from;
    MarkKind kind;
    TraceeAddr behind;  ///< The instruction behind, for those that come back there.
    bool sigreturn;
  };
  [[nodiscard]] Departure departure(TraceeAddr from) const;

  InsnCache* insns_;
  TraceConsumer& sink_;
  Levels levels_;
  std::vector<Record> batch_;
  bool unusual_ = true;  ///< The next pair needs more than to be copied.
  bool started_ = false;
  std::optional<TraceeAddr> start_pc_;
  std::optional<Loss> loss_;
  std::optional<Departure> departure_;
  std::uint64_t records_ = 0;
  std::uint64_t gaps_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace backtrail::decoder::perf
