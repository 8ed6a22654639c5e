#pragma once
/// @file
/// Branch records turned back into calls.
///
/// Returns are matched by return address, not by name, so recursion is no trouble. What leaves
/// frames without returning (exceptions, longjmp) is recognised by where it arrives: in a function
/// that is on the stack. Nothing is invented: a call whose begin or end was not seen says so.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "decoder/calls/code_map.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

enum class CallBegin : std::uint8_t {
  kCalled,
  kTailCalled,  ///< Jumped to, in place of the call before it.
  kSignal,      ///< A handler; `site` is the instruction that was interrupted.
  kUnseen,      ///< It was running when the trace, or what is behind a gap, began.
  kResumed,     ///< It goes on: somebody switched (back) to its stack.
};
enum class CallEnd : std::uint8_t {
  kReturned,
  kTailCalled,  ///< By jumping to the call after it.
  kUnwound,     ///< Left by an exception or longjmp, from here or from deeper.
  kGap,         ///< Recording stopped, or went on in code that cannot be read.
  kOpen,        ///< Still running at the end of the trace.
  kSwitched,    ///< Somebody switched to another stack; a call that begins by kResumed goes on.
};

inline constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

struct Call {
  FunctionRef function;
  TraceeAddr first;              ///< The first instruction that was seen of it.
  TraceeAddr site;               ///< The call, jump or interrupted instruction; 0 = unseen.
  std::size_t parent = kNoCall;  ///< Index of the caller.
  std::uint32_t depth = 0;       ///< 0: nothing is known above it.
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kOpen;
  /// Records before its begin and before its end, from the first one fed on.
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
};

class CallRebuilder {
 public:
  /// Both are borrowed.
  CallRebuilder(InsnCache& insns, CodeMap& code) : insns_{insns}, code_{code} {}

  /// Records of one thread, oldest first, in pieces of any size.
  void feed(std::span<const Record> records);
  /// Callers before what they call, in the order of execution. Open calls end here.
  [[nodiscard]] std::vector<Call> finish();

 private:
  struct Frame {
    std::size_t call;
    FunctionRef function;
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
  void push(const Record& record, CallBegin begin, TraceeAddr return_address);
  void replace_top(const Record& record, const FunctionRef& function);
  void arrive(const Record& record, const FunctionRef& function);
  void begin_anew(TraceeAddr at);
  void grow(const Record& record);
  void pop(CallEnd end);
  void pop_above(std::size_t frame, CallEnd end);
  void park(std::size_t frame);
  bool resume(const Record& record);
  [[nodiscard]] std::size_t frame_of(const FunctionRef& function) const;

  InsnCache& insns_;
  CodeMap& code_;
  std::vector<Call> calls_;
  std::vector<Frame> stack_;
  /// What was on other stacks when they were left, the newest last. Guessed from returns that do
  /// not fit, so it is looked at only when a transfer fits nothing else.
  std::vector<std::vector<Frame>> parked_;
  // Of the stretch since the last gap.
  std::vector<std::size_t> roots_;  ///< Calls that nothing is known above.
  std::uint64_t stretch_begin_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace backtrail::decoder
