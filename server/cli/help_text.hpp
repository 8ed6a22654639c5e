#pragma once
/// @file
/// Texts of --help and --version.

#include <string>

namespace backtrail::server {

/// Of the program under the name backtrail-gdbserver.
[[nodiscard]] std::string gdbserver_usage();
[[nodiscard]] std::string gdbserver_version();
/// "backtrail 0.1.0"
[[nodiscard]] std::string backtrail_version();

}  // namespace backtrail::server
