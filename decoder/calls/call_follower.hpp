// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rebuilds calls from branch records as they arrive. Memory use depends on the open calls only.
///
/// Returns are matched by return address, not by name, so recursion needs no special case. An exit
/// without a return (exception, longjmp) is recognised by its target: a function that is on the
/// stack. Calls whose begin or end is not in the trace are marked as such.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/trace/code_history.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

class CallFollower {
 public:
  /// Borrows all arguments.
  /// @param insns  The code at the end.
  /// @param past   What the thread's trace tells of its code; may be null.
  CallFollower(InsnCache& insns, CodeMap& code, CallSink& sink, CodeHistory* past = nullptr)
      : insns_{insns}, code_{code}, sink_{sink}, past_{past} {}

  /// Feeds records of one thread, oldest first, in pieces of any size.
  /// @param end  The number of the record after them, as `past` counts.
  void feed(std::span<const Record> records, std::uint64_t end = 0);
  /// Ends all open calls. Records fed afterwards belong to another thread.
  void finish();

  /// A call that has not ended.
  struct Open {
    TraceeAddr return_address;  ///< 0 if unknown.
    bool signal = false;        ///< A signal handler, which returns through the kernel.
  };
  /// Returns the open calls, outermost first.
  [[nodiscard]] std::vector<Open> open() const;

 private:
  struct Frame {
    Call call;
    TraceeAddr return_address;  ///< 0 if unknown.
    bool signal = false;
  };

  void take(const Record& record);
  void take_branch(const Record& record);
  void take_unknown(const Record& record);
  void take_call(const Record& record, const arch::InsnFacts& facts);
  void take_return(const Record& record);
  void take_jump(const Record& record);
  void take_system_return(const Record& record);
  [[nodiscard]] Call call_of(const Record& record, CallBegin begin);
  void push(const Call& call, TraceeAddr return_address, bool signal = false);
  void replace_top(const Record& record, const FunctionRef& function);
  void arrive(const Record& record, const FunctionRef& function);
  void begin_anew(TraceeAddr at);
  void leave_stack();
  void switch_stack(const Record& record, const FunctionRef& function);
  bool go_on(const Record& record);
  [[nodiscard]] bool may_go_on(std::span<const Frame> frames) const;
  [[nodiscard]] static bool is_alike(std::span<const Frame> x, std::span<const Frame> y);
  [[nodiscard]] std::size_t only_one_left_at(TraceeAddr behind) const;
  std::vector<Frame> take_parked(std::size_t which, std::size_t without);
  void push_again(const Record& record, std::span<const Frame> frames, TraceeAddr site = {});
  void grow(const Record& record);
  void pop(CallEnd end);
  void pop_above(std::size_t frame, CallEnd end);
  void park(std::size_t frame);
  bool resume(const Record& record);
  [[nodiscard]] std::size_t frame_of(const FunctionRef& function) const;

  InsnCache& insns_;
  CodeMap& code_;
  CallSink& sink_;
  CodeHistory* past_;
  std::uint64_t block_ = 0;  ///< Number of the record before the one that is taken.
  std::vector<Frame> stack_;
  /// Frames of stacks that were left, newest last. Switching functions announce a switch; otherwise
  /// it is guessed from returns that do not fit, and used only if nothing else fits.
  std::vector<std::vector<Frame>> parked_;
  /// Return address of the call by which the running function left its stack. Several stacks may
  /// have been left there; later returns tell which one continues. 0 if the stack is known or was
  /// not resumed.
  TraceeAddr behind_switch_;
  std::vector<TraceeAddr> returned_to_;  ///< Targets of returns since then, newest last.
  /// Switching functions announce switches, so none has to be guessed.
  bool switches_are_told_ = false;
  std::uint64_t stretch_begin_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace backtrail::decoder
