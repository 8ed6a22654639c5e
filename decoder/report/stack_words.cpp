// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/stack_words.hpp"

#include <fmt/format.h>

namespace backtrail::decoder {

std::string stack_problem(const Stack& stack, const JoinedStack& joined, const ThreadCalls& traced,
                          CodePlaces& places) {
  if (joined.result == JoinedStack::Result::kDisagrees) {
    const Call& call = traced.calls[joined.call];
    const std::string name = places.function_at(call.first);
    if (joined.by_call == TraceeAddr{}) {
      return fmt::format("the thread is in {}, but its last branches were in {}",
                         places.function_at(stack.frames.front().place()), name);
    }
    return fmt::format(
        "the stack contradicts the trace: {} was called from {}, but the stack has {} there; no "
        "callers were taken from the stack",
        name, places.function_at(joined.by_call - 1),
        joined.by_stack == TraceeAddr{} ? "nothing"
                                        : fmt::format("{:#x}", joined.by_stack.value()));
  }
  if (joined.result == JoinedStack::Result::kNoReturn) {
    return fmt::format(
        "the stack cannot be unwound beyond {}: its return address {:#x} follows no call",
        places.function_at(joined.outermost), joined.by_stack.value());
  }
  const std::string last = places.function_at(stack.frames.back().place());
  switch (stack.end) {
    case StackEnd::kNoUnwindInfo:
      return fmt::format(
          "the stack cannot be unwound beyond {}: there is no unwind information for it", last);
    case StackEnd::kDamaged:
      return fmt::format("the stack cannot be unwound beyond {}: it is damaged there", last);
    case StackEnd::kTooDeep:
      return fmt::format("the stack is more than {} calls deep; the outermost callers are unknown",
                         kMostStackFrames - 1);
    default:
      return fmt::format(
          "the stack cannot be unwound beyond {}: the return address is 0 or unreadable", last);
  }
}

}  // namespace backtrail::decoder
