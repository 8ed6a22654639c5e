#pragma once
/// @file
/// What a descriptor of another process leads to, as /proc tells.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace backtrail::tracee {

/// An open file of a process.
struct OpenFile {
  bool writes = false;      ///< It is open for writing.
  bool is_regular = false;  ///< A regular file of a file system.
  std::uint64_t inode = 0;
  std::string path;
  /// It is the memory of a process: /proc/PID/mem, or that of a thread.
  bool is_memory = false;
  /// Whose memory; nullopt if /proc of another PID namespace names it.
  std::optional<pid_t> memory_of;
};

/// nullopt if `tid` is gone or has no such descriptor.
[[nodiscard]] std::optional<OpenFile> open_file(pid_t tid, int fd);
/// All files that `tid` has open for writing. Empty if it is gone.
[[nodiscard]] std::vector<OpenFile> files_open_for_writing(pid_t tid);
/// Where the next read or write of the descriptor begins; nullopt as for open_file().
[[nodiscard]] std::optional<std::uint64_t> file_position(pid_t tid, int fd);

}  // namespace backtrail::tracee
