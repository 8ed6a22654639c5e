#pragma once
/// @file
/// Branch records turned back into calls, as they come; memory for what is open only.
///
/// Returns are matched by return address, not by name, so recursion is no trouble. What leaves
/// frames without returning (exceptions, longjmp) is recognised by where it arrives: in a function
/// that is on the stack. Nothing is invented: a call whose begin or end was not seen says so.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

class CallFollower {
 public:
  /// All are borrowed.
  CallFollower(InsnCache& insns, CodeMap& code, CallSink& sink)
      : insns_{insns}, code_{code}, sink_{sink} {}

  /// Records of one thread, oldest first, in pieces of any size.
  void feed(std::span<const Record> records);
  /// Open calls end here; what is fed then is another thread's.
  void finish();

  /// A call that has not ended.
  struct Open {
    TraceeAddr return_address;  ///< 0 = unknown.
    bool signal = false;        ///< By a signal: a handler, which returns by way of the kernel.
  };
  /// Outermost first.
  [[nodiscard]] std::vector<Open> open() const;

 private:
  struct Frame {
    Call call;
    TraceeAddr return_address;  ///< 0 = unknown.
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
  std::vector<Frame> stack_;
  /// What was on other stacks when they were left, the newest last: told by functions that switch,
  /// or else guessed from returns that do not fit, and then looked at only when nothing else fits.
  std::vector<std::vector<Frame>> parked_;
  /// Behind the call that a stack was left by, which runs again: several may have been left by it,
  /// and where control returns to tells which one it is. 0: known, or nothing runs again.
  TraceeAddr behind_switch_;
  std::vector<TraceeAddr> returned_to_;  ///< By what runs since then, the newest last.
  bool switches_are_told_ = false;       ///< By functions that do that: nothing has to be guessed.
  std::uint64_t stretch_begin_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace backtrail::decoder
