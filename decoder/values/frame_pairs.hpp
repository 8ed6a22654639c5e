// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Pairs calls with their returns.

#include <cstdint>
#include <vector>

#include "decoder/values/model_cache.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder::values {

/// A call and its return, by index of their steps.
struct FramePair {
  std::size_t call = 0;
  std::size_t ret = 0;
};

/// Returns the exact pairs of the steps from `begin` on: the return goes to the instruction after
/// the call, every call in between has returned in this way, no signal came, and the stack pointer
/// was moved only as frames are made and dropped. A return to another address (longjmp, exceptions,
/// an overwritten return address) or a stack pointer from elsewhere (coroutines) ends all open
/// pairs.
[[nodiscard]] std::vector<FramePair> frame_pairs(const Window& window, std::size_t begin,
                                                 ModelCache& models);

}  // namespace backtrail::decoder::values
