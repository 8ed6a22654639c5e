#pragma once
/// @file
/// Executable memory that translations are kept of: what a file says, and nobody has changed.

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// Executable memory and the file behind it, as far as a stat tells whether it is the same.
struct CodeModule {
  TraceeAddr begin;
  TraceeAddr end;
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t changed_ns = 0;
  bool operator==(const CodeModule&) const = default;

  [[nodiscard]] bool contains(TraceeAddr address) const {
    return begin <= address && address < end;
  }
  [[nodiscard]] bool overlaps(TraceeAddr from, TraceeAddr to) const {
    return begin < to && from < end;
  }
  /// Both are of one mapping of one file, a part of which may have become something else.
  [[nodiscard]] bool is_beside(const CodeModule& other) const {
    return device == other.device && inode == other.inode && size == other.size &&
           changed_ns == other.changed_ns && begin - file_offset == other.begin - other.file_offset;
  }
  /// All that this one says, the other says too.
  [[nodiscard]] bool is_part_of(const CodeModule& other) const {
    return is_beside(other) && other.begin <= begin && end <= other.end;
  }
};

/// Where the file that is mapped there can be opened, if it can: in the process's own tree, or, if
/// it has left that (chroot(2)), in ours.
[[nodiscard]] std::optional<std::string> file_behind(pid_t pid, const ExecutableMap::Range& range);

/// The file behind the range; nothing where its content cannot be told from a file, or where the
/// process has pages of its own with another content.
[[nodiscard]] std::optional<CodeModule> identify(pid_t pid, const ExecutableMap::Range& range);

}  // namespace backtrail::tracee::cache
