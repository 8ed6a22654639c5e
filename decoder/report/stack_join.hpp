// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Adds the callers that only the stack shows to the calls of a trace: those that were running
/// before the examined part of the trace began.

#include <cstddef>
#include <cstdint>

#include "decoder/report/thread_calls.hpp"
#include "decoder/symbols/stack.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

struct JoinedStack {
  enum class Result : std::uint8_t {
    kComplete,   ///< All callers are known, up to one that has none.
    kCut,        ///< Callers of the outermost frame are unknown; Stack::end states why.
    kDisagrees,  ///< The stack contradicts the calls; nothing was added.
    kNoReturn,   ///< The return address of the outermost known frame follows no call.
  };
  Result result = Result::kComplete;
  /// Calls from the stack: `count` of them, outermost first, beginning at index `first`. The next
  /// call is the outermost one in the trace.
  std::size_t first = 0;
  std::size_t count = 0;
  // For kDisagrees: the call at index `call` returns to `by_call`, but the stack has `by_stack`.
  std::size_t call = 0;
  TraceeAddr by_call;
  TraceeAddr by_stack;   ///< Set for kDisagrees and kNoReturn.
  TraceeAddr outermost;  ///< An address in the outermost known frame.
};

/// Inserts the callers that `stack` has above the outermost open call into `traced`, as calls that
/// have not returned. Inserts nothing unless the return address of each open call is on the stack,
/// in order. Callers end at the first return address that follows no call.
[[nodiscard]] JoinedStack join_stack(const Stack& stack, ThreadCalls& traced, InsnCache& insns,
                                     CodeMap& code);

}  // namespace backtrail::decoder
