// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail info` and `backtrail pack`.

#include <string>

namespace backtrail::server {

struct InfoOptions {
  std::string file;
};

struct PackOptions {
  std::string file;
  std::string output;  ///< Empty: the crash file's name with .tar.zst.
};

/// Both return the exit status: 0; 1 if the file cannot be read or the archive cannot be written.
[[nodiscard]] int run_info(const InfoOptions& options);
[[nodiscard]] int run_pack(const PackOptions& options);

}  // namespace backtrail::server
