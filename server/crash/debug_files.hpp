#pragma once
/// @file
/// What debuggers want besides a program: separate debug files, and the sources DWARF names.

#include <set>
#include <string>

namespace backtrail::server {

struct DebugFiles {
  std::set<std::string> debug;    ///< Separate debug files, also those they refer to.
  std::set<std::string> sources;  ///< That are here.
};

/// Adds what belongs to an ELF file. debuginfod is asked where DEBUGINFOD_URLS is set, as elfutils
/// does.
void find_debug_files(const std::string& elf, DebugFiles& out);

}  // namespace backtrail::server
