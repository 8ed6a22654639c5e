#pragma once
/// @file
/// What programs have in common that load the same libraries.

#include <string>

namespace backtrail::tracee::cache {

struct ProgramKind {
  std::string linker;     ///< PT_INTERP. Empty: the program needs none, or is no ELF file.
  std::string libraries;  ///< DT_NEEDED, in order, a space in front of each.
};

/// Of an executable, by a descriptor that stays the caller's.
[[nodiscard]] ProgramKind kind_of_program(int fd);

}  // namespace backtrail::tracee::cache
