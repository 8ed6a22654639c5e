// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail why`: tells where a value was last written before a crash, and from what.

#include <string>
#include <vector>

namespace backtrail::server {

struct WhyOptions {
  std::string file;
  std::string expression;          ///< See value_origin.hpp.
  std::vector<std::string> roots;  ///< Folders searched first for the program's files.
};

/// @return The exit status: 0; 1 if the file cannot be read or has no such variable.
[[nodiscard]] int run_why(const WhyOptions& options);

}  // namespace backtrail::server
