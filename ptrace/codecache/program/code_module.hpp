// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Modules: executable memory that is mapped from a file and unchanged, so that its translations
/// can be kept.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// Executable memory and the file mapped there, identified by its code: copies of the file are the
/// same module.
struct CodeModule {
  TraceeAddr begin;
  TraceeAddr end;
  std::uint64_t file_offset = 0;
  std::uint64_t identity = 0;  ///< The file's.
  bool operator==(const CodeModule&) const = default;

  [[nodiscard]] bool contains(TraceeAddr address) const {
    return begin <= address && address < end;
  }
  [[nodiscard]] bool overlaps(TraceeAddr from, TraceeAddr to) const {
    return begin < to && from < end;
  }
  /// Returns true if both are parts of one mapping of one file.
  [[nodiscard]] bool is_beside(const CodeModule& other) const {
    return identity == other.identity && begin - file_offset == other.begin - other.file_offset;
  }
  /// Returns true if this module lies within `other`.
  [[nodiscard]] bool is_part_of(const CodeModule& other) const {
    return is_beside(other) && other.begin <= begin && end <= other.end;
  }
};

/// Returns a path by which the file mapped there can be opened: in the process's own tree or, if
/// the process has left that (chroot(2)), in the server's. nullopt if there is none.
[[nodiscard]] std::optional<std::string> file_behind(pid_t pid, const ExecutableMap::Range& range);

/// Returns the identity of a part of a file, given by a path at which it can be opened, an offset
/// and a length; nullopt if it has none.
using FileIdentity =
    std::function<std::optional<std::uint64_t>(const std::string&, std::uint64_t, std::uint64_t)>;

/// Returns the module mapped at the range. nullopt if its contents do not come from an identifiable
/// file, or if the process has private pages with other contents.
[[nodiscard]] std::optional<CodeModule> identify(pid_t pid, const ExecutableMap::Range& range,
                                                 const FileIdentity& identity_of);

/// Returns false if the file was written since the module was identified, so that translations made
/// since then may not be the module's. The process may have ended; if only it could reach the file,
/// the answer is false.
[[nodiscard]] bool is_still(const CodeModule& module, const std::string& path,
                            const FileIdentity& identity_of);

}  // namespace backtrail::tracee::cache
