#pragma once
/// @file
/// A call, as branch records tell of it, and who hears of calls as they come.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "decoder/calls/code_map.hpp"

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
  std::size_t parent = kNoCall;  ///< Index of the caller, where calls stand in a list.
  std::uint32_t depth = 0;       ///< 0: nothing is known above it. Likewise.
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kOpen;
  bool from_stack = false;  ///< No branch tells of it: it is on the stack at the end.
  /// Records before its begin and before its end, from the first one fed on.
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
};

/// Hears of calls in the order in which they happened. Calls nest: the one that ends is the one
/// that began last of those that have not ended.
class CallSink {
 public:
  CallSink() = default;
  CallSink(const CallSink&) = delete;
  CallSink& operator=(const CallSink&) = delete;
  virtual ~CallSink() = default;

  /// Nothing that follows was called by anything that came before. No call is open.
  virtual void stretch() = 0;
  virtual void begin(const Call& call) = 0;
  /// The innermost call's function, and where it began, are others than was thought.
  virtual void rename(const Call& call) = 0;
  virtual void end(const Call& call) = 0;
  /// As begin(): one that was running since the stretch began, and has called all that came since.
  /// No other call is open.
  virtual void begin_around(const Call& call) = 0;
};

}  // namespace backtrail::decoder
