#pragma once
/// @file
/// Calls and the returns that belong to them.

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

/// The exact pairs of the steps from `begin` on: the return goes behind the call, every call in
/// between has returned likewise, no signal came, and the stack pointer was only moved as frames
/// are made and dropped. A return that goes elsewhere (longjmp, exceptions, a smashed address), or
/// a stack pointer from elsewhere (coroutines), ends all pairs that are open.
[[nodiscard]] std::vector<FramePair> frame_pairs(const Window& window, std::size_t begin,
                                                 ModelCache& models);

}  // namespace backtrail::decoder::values
