// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Failures with a text for the user.

#include <string>

#include <tl/expected.hpp>

namespace backtrail::server {

/// A value, or a text for the user who started the program: what failed, why, and what to do.
template <typename T>
using Explained = tl::expected<T, std::string>;

[[nodiscard]] inline tl::unexpected<std::string> explain(std::string text) {
  return tl::unexpected<std::string>{std::move(text)};
}

}  // namespace backtrail::server
