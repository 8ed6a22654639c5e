// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The list of mappings of a process that is dead, as /proc had it.

#include <string>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// Lines as of /proc/PID/maps. Permissions, offsets and names are those that the core knows; device
/// and inode are 0.
[[nodiscard]] std::string core_maps_text(const decoder::CoreFile& core);

/// The files below /proc that debuggers read of a process. What else lies there belongs to a living
/// one of the same number.
class CoreProcFiles {
 public:
  /// `core` is borrowed.
  explicit CoreProcFiles(const decoder::CoreFile& core) : core_{core} {}
  /// Where a file of /proc can be opened; a path that leads nowhere if it cannot.
  [[nodiscard]] std::string path_of(const std::string& path);

 private:
  const decoder::CoreFile& core_;
  tracee::UniqueFd maps_;
};

}  // namespace backtrail::server
