// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Files that a debugger needs besides a program: separate debug files and the sources that DWARF
/// names.

#include <set>
#include <string>

namespace backtrail::server {

struct DebugFiles {
  std::set<std::string> debug;    ///< Separate debug files, including those that they refer to.
  std::set<std::string> sources;  ///< Sources that exist on this machine.
};

/// Adds the files that belong to an ELF file. Like elfutils, asks debuginfod if DEBUGINFOD_URLS is
/// set.
void find_debug_files(const std::string& elf, DebugFiles& out);

}  // namespace backtrail::server
