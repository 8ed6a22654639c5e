// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Files of this machine that the client has opened through vFile.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// Opens paths as the process named by set_file_system() sees them: below its root, in its mount
/// namespace. The kernel reports the paths of that process's program and mappings relative to the
/// root of that namespace or to the server's root, so a file that is absent below the process's own
/// root is looked up there. The program itself is found even if its file has been deleted. Errors
/// carry an errno. File numbers are not the server's descriptors, so a client reaches only files
/// that it opened.
class HostFiles {
 public:
  /// Sets the process; 0 = the server itself. The process is looked at when a path is used.
  void set_file_system(pid_t pid) { file_system_ = pid; }

  /// @param flags open(2) flags of this system.
  /// @return The client's number for the file. Errors: EMFILE beyond 256 open files.
  Result<int> open(const std::string& path, int flags, mode_t mode);
  Result<void> close(int file);
  /// Returns at most `size_bytes` bytes; empty at the end of the file.
  Result<std::vector<std::uint8_t>> read(int file, std::size_t size_bytes, std::uint64_t offset);
  Result<std::size_t> write(int file, std::span<const std::uint8_t> data, std::uint64_t offset);
  Result<struct stat> status(int file);
  /// Returns the status of the path itself; does not follow a symbolic link.
  [[nodiscard]] Result<struct stat> link_status(const std::string& path) const;
  Result<void> unlink(const std::string& path);
  Result<std::string> read_link(const std::string& path);

 private:
  [[nodiscard]] Result<int> descriptor(int file) const;

  pid_t file_system_ = 0;
  std::map<int, tracee::UniqueFd> open_;  ///< Open files by the client's number.
};

}  // namespace backtrail::server
