#pragma once
/// @file
/// Files of this machine that the client has open through vFile.

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

/// Paths are taken as one process sees them, which `set_file_system` names: below its root, in its
/// mount namespace. The kernel tells paths of that process's program and mappings as they are seen
/// from the root of the namespace, or from ours, so a file that is not below the process's own root
/// is looked for there. The program itself is found even if its file has been deleted. Errors carry
/// an errno. Descriptors are numbers of our own, so a client cannot reach any other.
class HostFiles {
 public:
  /// 0 = this server's own. The process is looked at when a path is used.
  void set_file_system(pid_t pid) { file_system_ = pid; }

  /// @param flags open(2) flags of this system.
  /// @return The client's number for it. At most 256 files at a time.
  Result<int> open(const std::string& path, int flags, mode_t mode);
  Result<void> close(int file);
  /// At most `size_bytes`; empty at the end of the file.
  Result<std::vector<std::uint8_t>> read(int file, std::size_t size_bytes, std::uint64_t offset);
  Result<std::size_t> write(int file, std::span<const std::uint8_t> data, std::uint64_t offset);
  Result<struct stat> status(int file);
  /// Of the path itself, not of what a symbolic link leads to.
  [[nodiscard]] Result<struct stat> link_status(const std::string& path) const;
  Result<void> unlink(const std::string& path);
  Result<std::string> read_link(const std::string& path);

 private:
  [[nodiscard]] Result<int> descriptor(int file) const;

  pid_t file_system_ = 0;
  std::map<int, tracee::UniqueFd> open_;  ///< By the client's number.
};

}  // namespace backtrail::server
