// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A call rebuilt from branch records, and the interface for receiving calls one by one.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "decoder/calls/code_map.hpp"

namespace backtrail::decoder {

enum class CallBegin : std::uint8_t {
  kCalled,
  kTailCalled,  ///< Jumped to, in place of the previous call.
  kSignal,      ///< A signal handler; `site` is the interrupted instruction.
  kUnseen,      ///< Already running when the trace began, or after a gap.
  kResumed,     ///< Continues after a switch back to its stack.
};
enum class CallEnd : std::uint8_t {
  kReturned,
  kTailCalled,  ///< Left by a jump to the next call.
  kUnwound,     ///< Left by an exception or longjmp, from itself or from a callee.
  kGap,         ///< Recording stopped, or continued in unreadable code.
  kOpen,        ///< Still running at the end of the trace.
  kSwitched,    ///< Suspended by a stack switch; a call with kResumed continues it.
};

inline constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

struct Call {
  FunctionRef function;
  TraceeAddr first;              ///< The first of its instructions in the trace.
  TraceeAddr site;               ///< The call, jump or interrupted instruction; 0 if unknown.
  std::size_t parent = kNoCall;  ///< Index of the caller in the list; kNoCall if the caller is
                                 ///< unknown. Unset outside of lists.
  std::uint32_t depth = 0;       ///< Number of known callers. Unset outside of lists.
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kOpen;
  bool from_stack = false;  ///< Found on the stack at the end, not in the trace.
  /// Number of records fed when the call began and when it ended, the record itself included.
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
};

/// Receives calls in the order of execution. Calls nest: the call that ends is always the innermost
/// open one.
class CallSink {
 public:
  CallSink() = default;
  CallSink(const CallSink&) = delete;
  CallSink& operator=(const CallSink&) = delete;
  virtual ~CallSink() = default;

  /// Begins a stretch: no later call was made by an earlier one. No call is open.
  virtual void stretch() = 0;
  virtual void begin(const Call& call) = 0;
  /// Corrects the function and the first instruction of the innermost call.
  virtual void rename(const Call& call) = 0;
  virtual void end(const Call& call) = 0;
  /// Begins a call that was running since the stretch began and made all root calls since then. No
  /// other call is open.
  virtual void begin_around(const Call& call) = 0;
};

}  // namespace backtrail::decoder
