// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds out how to execute this program again. In the portable folder a dynamic linker is executed
/// with the program as its argument, and /proc/PID/exe names that linker.

#include <string>
#include <vector>

#include <sys/types.h>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::server {

struct OwnProgram {
  std::string file;                 ///< ELF file of this program.
  std::string executable;           ///< File to execute: `file`, or the linker.
  std::vector<std::string> prefix;  ///< Arguments to pass before the program's own.
};

/// @param inside  An address of this program's file in this process.
/// Error kUnreadable if no file is mapped there; errors of reading /proc.
[[nodiscard]] Result<OwnProgram> own_program(TraceeAddr inside);

/// Returns the address of a process's first mapping of a file. Errors like own_program().
[[nodiscard]] Result<TraceeAddr> place_of(pid_t pid, const std::string& file);

}  // namespace backtrail::server
