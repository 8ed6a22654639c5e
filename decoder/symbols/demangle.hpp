#pragma once
/// @file
/// Names of functions as their source has them.

#include <string>

namespace backtrail::decoder {

/// Longer names are cut: templates can make them huge.
inline constexpr std::size_t kMaxNameBytes = 2000;

/// A symbol's name without its version ("f@@V1"), demangled where it is a name of C++ or Rust;
/// others as they are.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace backtrail::decoder
