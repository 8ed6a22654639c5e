// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Files of another process, which may have its own root and mount namespace.

#include <optional>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// Returns true if the process is in the server's mount namespace. Its root may differ even then.
/// Errors: the errno.
[[nodiscard]] Result<bool> shares_our_mounts(pid_t pid);

/// Returns "/proc/PID/root/../..": the topmost directory of the process's mount namespace. It lies
/// above the process's own root after chroot(2), and is the server's root if the namespace is the
/// server's.
[[nodiscard]] std::string uppermost_folder(pid_t pid);

/// Returns a path by which the server can open a file that the process has mapped.
/// @param path    As in /proc/PID/maps: seen from the server's root or, if the process has another
///                mount namespace, from the topmost directory of that namespace.
/// @param inode   Inode of the mapping; a file with another one is rejected.
/// @param device  Device of the mapping. It may differ from the file's (btrfs, overlayfs), so it is
///                compared only for a file at that path in the server's own namespace.
/// @param facts   If not null, gets what stat(2) tells of the file.
/// @return nullopt if the file was replaced or deleted, or cannot be reached.
[[nodiscard]] std::optional<std::string> find_mapped_file(pid_t pid, const std::string& path,
                                                          ino_t inode, dev_t device,
                                                          struct stat* facts = nullptr);

}  // namespace backtrail::tracee
