#pragma once
/// @file
/// Files of another process, which may have a root and a mount namespace of its own.

#include <optional>
#include <string>

#include <sys/types.h>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// Whether the process is in our mount namespace. Its root may be another one all the same. Errors:
/// the kernel's.
[[nodiscard]] Result<bool> shares_our_mounts(pid_t pid);

/// "/proc/PID/root/../..": the uppermost directory of the mount namespace of a process. It is above
/// the process's own root after chroot(2), and it is our own root where the namespace is ours.
[[nodiscard]] std::string uppermost_folder(pid_t pid);

/// A path of ours that leads to a file that the process has mapped.
/// @param path    As /proc/PID/maps has it: seen from our root, or from the uppermost directory of
///                the process's mount namespace where that is another one.
/// @param inode   Of the mapping; a file with another one is not taken.
/// @param device  Of the mapping. It may differ from the file's (btrfs, overlayfs), so it decides
///                only about a file of that name of our own.
/// @return nullopt if the file has been replaced or deleted, or cannot be reached.
[[nodiscard]] std::optional<std::string> find_mapped_file(pid_t pid, const std::string& path,
                                                          ino_t inode, dev_t device);

}  // namespace backtrail::tracee
