// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail warm`.

#include <string>
#include <vector>

namespace backtrail::server {

struct WarmOptions {
  std::vector<std::string> programs;  ///< As typed; looked up in PATH if they have no slash.
};

/// Translates the programs ahead, several at a time, and prints a line for each. Returns the exit
/// status: 0 if all were translated.
int run_warm(const WarmOptions& options);

}  // namespace backtrail::server
