#pragma once
/// @file
/// Calls as begins and ends, in the order in which they happened.

#include <span>
#include <vector>

#include "decoder/calls/call.hpp"

namespace backtrail::decoder {

/// Calls `open(index)` and `close(index)` for each call, perfectly nested. Takes no stack of its
/// own, however deep the calls are.
template <typename Open, typename Close>
void walk_calls(std::span<const Call> calls, Open&& open, Close&& close) {
  std::vector<std::size_t> stack;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    while (!stack.empty() && stack.back() != calls[i].parent) {
      close(stack.back());
      stack.pop_back();
    }
    open(i);
    stack.push_back(i);
  }
  for (; !stack.empty(); stack.pop_back()) close(stack.back());
}

}  // namespace backtrail::decoder
