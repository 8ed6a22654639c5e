// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Texts of --help and --version.

#include <string>

namespace backtrail::server {

/// Usage text under the name backtrail-gdbserver.
[[nodiscard]] std::string gdbserver_usage();
[[nodiscard]] std::string gdbserver_version();
/// Returns "backtrail 0.1.0".
[[nodiscard]] std::string backtrail_version();

}  // namespace backtrail::server
