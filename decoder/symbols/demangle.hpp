// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Turns symbols into names as the source has them.

#include <string>

namespace backtrail::decoder {

/// Longer names are cut; templates can make them huge.
inline constexpr std::size_t kMaxNameBytes = 2000;

/// Returns a symbol's name without its version ("f@@V1"), demangled if it is a C++ or Rust name.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace backtrail::decoder
