// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Turns a CPU's raw (from, to) pairs into branch records: losses become gaps, kernel addresses
/// become marks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder::perf {

/// An amount of missing records.
struct Loss {
  std::uint64_t count = 0;  ///< 0 if unknown.
  LossBound bound = LossBound::kExact;
  GapReason reason = GapReason::kOverflow;
};

/// Adds two losses; the weaker bound applies.
[[nodiscard]] Loss operator+(const Loss& a, const Loss& b);

/// Which branches are passed on.
enum class Levels : std::uint8_t {
  kUser,  ///< The program's; of the kernel's only entries and returns.
  kAll,   ///< The program's and the kernel's, unchanged.
};

/// Assembles records of one thread, in order. With Levels::kAll each pair is a record. Otherwise
/// pairs with a kernel address become:
///
///     user -> kernel, then kernel -> user
///       to the instruction after a system call    no record: straight-line code
///       to the place that it left                 no record: an interrupt or a fault
///       to any other place                        kAsync (a signal), or a branch if the
///                                                 system call was sigreturn
///
/// Both ends are also passed on as marks, except for an interrupt or a fault.
class BranchAssembler {
 public:
  /// Borrows both. Without `insns` every kernel entry counts as asynchronous.
  BranchAssembler(InsnCache* insns, TraceConsumer& sink, Levels levels = Levels::kUser);

  /// Begins recording with the thread at `pc`; 0 if unknown, when the first pair defines it.
  void start(TraceeAddr pc);
  /// Takes BTS records of 24 bytes; ignores a partial one at the end.
  void raw_records(std::span<const std::uint8_t> bytes);
  void pair(std::uint64_t from, std::uint64_t to) {
    if (((from | to) >> 63U) != 0 || from == 0 || unusual_) {
      unusual_pair(from, to);
    } else {
      push(branch(TraceeAddr{from}, TraceeAddr{to}));
    }
  }
  /// Reports a loss, which becomes one gap before the next record.
  void lost(const Loss& loss);
  void mark(const TraceMark& mark);
  /// Adds a record from another source: the debugger moved the pc, or the program called exec.
  void insert(const Record& record);
  /// Passes everything on. `pc` is the thread's pc if known; a pending loss becomes a gap that ends
  /// there.
  void flush(std::optional<TraceeAddr> pc = std::nullopt);

  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }
  /// Returns the number of pairs that were no branch: `from` of 0, or both ends in the kernel.
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

  /// A kernel entry that has not returned yet.
  struct Departure {
    TraceeAddr from;
    MarkKind kind;
    TraceeAddr behind;  ///< The next instruction if it was a system call or a far transfer;
                        ///< otherwise `from`.
    bool sigreturn;
  };
  [[nodiscard]] Departure departure(TraceeAddr from) const;

  InsnCache* insns_;
  TraceConsumer& sink_;
  Levels levels_;
  std::vector<Record> batch_;
  bool unusual_ = true;  ///< The next pair needs unusual_pair().
  bool started_ = false;
  std::optional<TraceeAddr> start_pc_;
  std::optional<Loss> loss_;
  std::optional<Departure> departure_;
  std::uint64_t records_ = 0;
  std::uint64_t gaps_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace backtrail::decoder::perf
