// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells what a descriptor of another process refers to, from /proc.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace backtrail::tracee {

/// An open file of a process.
struct OpenFile {
  bool writes = false;      ///< Open for writing.
  bool is_regular = false;  ///< A regular file of a file system.
  std::uint64_t inode = 0;
  std::string path;
  /// The file is the memory of a process or thread, /proc/PID/mem.
  bool is_memory = false;
  /// The process whose memory it is; nullopt if the file belongs to /proc of another PID namespace.
  std::optional<pid_t> memory_of;
};

/// Returns nullopt if `tid` is gone or has no such descriptor.
[[nodiscard]] std::optional<OpenFile> open_file(pid_t tid, int fd);
/// Returns all files that `tid` has open for writing. Empty if it is gone.
[[nodiscard]] std::vector<OpenFile> files_open_for_writing(pid_t tid);
/// Returns the file offset of the descriptor in bytes; nullopt as for open_file().
[[nodiscard]] std::optional<std::uint64_t> file_position(pid_t tid, int fd);

}  // namespace backtrail::tracee
