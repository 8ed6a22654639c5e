#pragma once
/// @file
/// `backtrail replay`: a crash file to debug.

#include <string>
#include <vector>

#include "server/transport/comm_spec.hpp"

namespace backtrail::server {

struct ReplayOptions {
  CommSpec comm;
  bool says_how = false;  ///< No place was given: listen anywhere and print how to connect.
  std::string file;
  std::vector<std::string> roots;  ///< Folders in which the program's files are looked for first.
  std::string unpack;              ///< Where an archive is unpacked to; empty: a temporary folder.
};

/// @return The exit status: 0; 1 when the file cannot be read or served.
[[nodiscard]] int run_replay(const ReplayOptions& options);

}  // namespace backtrail::server
