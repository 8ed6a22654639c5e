// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/process_files.hpp"

#include <sys/stat.h>

#include "ptrace/os/file_facts.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// More levels than occur. ".." of the topmost directory is itself.
constexpr int kLevels = 64;

}  // namespace

Result<bool> shares_our_mounts(pid_t pid) {
  struct stat ours {};
  struct stat theirs {};
  if (::stat("/proc/self/ns/mnt", &ours) != 0) return fail_errno("stat /proc/self/ns/mnt");
  if (::stat(ProcFs{}.path(pid, "ns/mnt").c_str(), &theirs) != 0) {
    return fail_errno("stat /proc/PID/ns/mnt", static_cast<std::uint64_t>(pid));
  }
  return is_same_file(ours, theirs);
}

std::string uppermost_folder(pid_t pid) {
  std::string folder = ProcFs{}.path(pid, "root");
  for (int level = 0; level < kLevels; ++level) folder += "/..";
  return folder;
}

std::optional<std::string> find_mapped_file(pid_t pid, const std::string& path, ino_t inode,
                                            dev_t device, struct stat* facts) {
  if (inode == 0 || !path.starts_with('/')) return std::nullopt;
  struct stat own {};
  struct stat& now = facts != nullptr ? *facts : own;
  const auto is_it = [&](const std::string& found) {
    return ::stat(found.c_str(), &now) == 0 && now.st_ino == inode;
  };
  std::string found = ProcFs{}.path(pid, "root") + path;
  if (is_it(found)) return found;
  if (is_it(path) && now.st_dev == device) return path;
  found = uppermost_folder(pid) + path;
  if (is_it(found)) return found;
  return std::nullopt;
}

}  // namespace backtrail::tracee
