// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a mapped ELF file tells about its functions and those of others that it uses.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// All addresses are those in the process.
struct LinkedModule {
  std::optional<TraceeAddr> entry;       ///< The file's entry point.
  std::vector<TraceeAddr> functions;     ///< Where functions begin, by the unwind table; ascending.
  std::vector<TraceeAddr> initializers;  ///< Called by the dynamic linker, first and last.
  std::vector<std::pair<std::string, TraceeAddr>> exports;  ///< Functions for others.
  std::vector<std::pair<TraceeAddr, std::string>> imports;  ///< Pointers to functions of others.
  /// Pointers in the file's data to its own code. Those to be set by the result of a function
  /// (IRELATIVE) point to that.
  std::vector<std::pair<TraceeAddr, TraceeAddr>> pointers;
};

/// Reads the ELF file at `path`, which is mapped at the range. Empty if there is no such file; what
/// is damaged is left out.
[[nodiscard]] LinkedModule read_linked_module(const std::string& path,
                                              const ExecutableMap::Range& range);

}  // namespace backtrail::tracee::cache
