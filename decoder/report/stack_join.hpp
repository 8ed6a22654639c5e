#pragma once
/// @file
/// The calls of a trace, and around them the callers that only the stack tells of: those that were
/// running before the part of the trace that is looked at began.

#include <cstddef>
#include <cstdint>

#include "decoder/report/thread_calls.hpp"
#include "decoder/symbols/stack.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

struct JoinedStack {
  enum class Result : std::uint8_t {
    kComplete,   ///< All callers are known, up to the one that has none.
    kCut,        ///< Callers of the outermost frame are not known; Stack::end says why.
    kDisagrees,  ///< The stack says something else than the calls; nothing was added.
    kNoReturn,   ///< The outermost frame that is known would return to where no call was made.
  };
  Result result = Result::kComplete;
  /// Calls from the stack: `count` of them from the one at `first` on, outermost first. The call
  /// behind them is the outermost that the trace tells of.
  std::size_t first = 0;
  std::size_t count = 0;
  // Of kDisagrees: a call, by its index, returns to `by_call`, but on the stack stands `by_stack`.
  std::size_t call = 0;
  TraceeAddr by_call;
  TraceeAddr by_stack;   ///< Of kNoReturn, too.
  TraceeAddr outermost;  ///< An address in the outermost frame that is known.
};

/// Puts the callers that `stack` has above the outermost open call into `traced`, as calls that
/// have not returned. Each open call's return address must stand on the stack, in order, or else
/// nothing is put there. Callers end where a return address has no call before it.
[[nodiscard]] JoinedStack join_stack(const Stack& stack, ThreadCalls& traced, InsnCache& insns,
                                     CodeMap& code);

}  // namespace backtrail::decoder
