// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kind of a program: which libraries it loads.

#include <string>

namespace backtrail::tracee::cache {

struct ProgramKind {
  std::string linker;     ///< PT_INTERP; empty if the program has none or is not an ELF file.
  std::string libraries;  ///< DT_NEEDED entries in order, each preceded by a space.
};

/// Returns the kind of an executable. The descriptor remains the caller's.
[[nodiscard]] ProgramKind kind_of_program(int fd);

}  // namespace backtrail::tracee::cache
