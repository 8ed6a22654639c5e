#pragma once
/// @file
/// Failures that a person is told about.

#include <string>

#include <tl/expected.hpp>

namespace backtrail::server {

/// A value, or a text for whoever started the program: what failed, why, and what to do.
template <typename T>
using Explained = tl::expected<T, std::string>;

[[nodiscard]] inline tl::unexpected<std::string> explain(std::string text) {
  return tl::unexpected<std::string>{std::move(text)};
}

}  // namespace backtrail::server
