// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The mappings of a dead process, in the format of /proc/PID/maps.

#include <string>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// Returns the text of /proc/PID/maps as far as the core knows it; device and inode are 0.
[[nodiscard]] std::string core_maps_text(const decoder::CoreFile& core);

/// Stands in for /proc/PID of a dead process; only `maps` is there. The real folder, if there is
/// one, belongs to a living process with the same id.
class CoreProcFiles {
 public:
  /// `core` is borrowed.
  explicit CoreProcFiles(const decoder::CoreFile& core) : core_{core} {}
  /// Returns a path to open instead of `path` below /proc; a path that does not exist if the file
  /// is not available.
  [[nodiscard]] std::string path_of(const std::string& path);

 private:
  const decoder::CoreFile& core_;
  tracee::UniqueFd maps_;
};

}  // namespace backtrail::server
