#pragma once
/// @file
/// How this program is executed once more: the portable folder's is run by a dynamic linker that is
/// told to, which is then what /proc/PID/exe names.

#include <string>
#include <vector>

#include <sys/types.h>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::server {

struct OwnProgram {
  std::string file;                 ///< Its ELF file.
  std::string executable;           ///< What is executed: that, or the linker.
  std::vector<std::string> prefix;  ///< Words in front of its own arguments.
};

/// @param inside  an address of this program's file in this process.
/// Error kUnreadable: no file is there. Errors of reading /proc.
[[nodiscard]] Result<OwnProgram> own_program(TraceeAddr inside);

/// Where a process has a file's first mapping. Errors as above.
[[nodiscard]] Result<TraceeAddr> place_of(pid_t pid, const std::string& file);

}  // namespace backtrail::server
