// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail replay`: serves a crash file to a debugger.

#include <string>
#include <vector>

#include "server/transport/comm_spec.hpp"

namespace backtrail::server {

struct ReplayOptions {
  CommSpec comm;
  bool says_how = false;  ///< The user gave no place: listen on any port and print how to connect.
  std::string file;
  std::vector<std::string> roots;  ///< Folders searched first for the program's files.
  std::string unpack;              ///< Folder to unpack an archive into; empty = a temporary one.
};

/// @return The exit status: 0; 1 if the file cannot be read or served.
[[nodiscard]] int run_replay(const ReplayOptions& options);

}  // namespace backtrail::server
